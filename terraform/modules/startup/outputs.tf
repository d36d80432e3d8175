output "metadata" {
  description = "The VMs' metadata. A change is another instance template; running VMs keep what they have."
  value       = local._metadata
  sensitive   = true

  # Base64 has 4 characters for 3 bytes.
  precondition {
    condition     = alltrue([for value in values(local._metadata) : length(base64encode(value)) / 4 * 3 <= 262144])
    error_message = "Google takes at most 256 KiB for one value of the metadata; received ${jsonencode({ for key, value in nonsensitive(local._metadata) : key => nonsensitive(length(value)) })} (characters)."
  }
}

output "payload" {
  description = "The names of the files that travel in the key `aiinfra-payload`, compressed, to /opt/aiinfra."
  value       = keys(local._payload)
}

output "ray_ports" {
  description = "The TCP ports that Ray's nodes listen on for each other, as a firewall rule has them; known at plan."
  value       = local._ports.ray
}

output "slurm_ports" {
  description = "Those of Slurm's, likewise."
  value       = local._ports.slurm
}
