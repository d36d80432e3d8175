output "cluster_id" {
  description = "Value of the marker `aiinfra-cluster` on everything that was made."
  value       = var.cluster_id
}

output "group" {
  description = "The managed instance group: name, zone, size, instance_template (a name), self_link and base_instance_name. The VMs may still be starting."
  value       = module.gpu_mig.group
}

output "image" {
  description = "The image that new VMs boot: project, family, name and self_link. Whoever wants to stay with it gives its name at the next plan."
  value       = module.gpu_mig.image
}

output "interfaces" {
  description = "Each VM's network interfaces, nic0 first: nic_type, and subnetwork as a path that starts with projects/."
  value       = local._interfaces
}

output "network" {
  description = "Where the VMs' first interface is: network and subnetwork, as paths that start with projects/."
  value = {
    network    = module.network.network
    subnetwork = module.network.subnetwork
  }
}

output "service_account_email" {
  description = "The account that the VMs act as; its roles are granted when this is known."
  value       = module.service_account.email
}
