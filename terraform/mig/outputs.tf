output "cluster_id" {
  description = "Value of the marker `aiinfra-cluster` on everything that was made."
  value       = local._cluster_id
}

output "dashboard" {
  description = "The dashboard: id (projects/.../dashboards/...) and url, for a browser; null without the Ops Agent."
  value       = one(module.monitoring[*].dashboard)
}

output "filestores" {
  description = "The Filestore shares, in order of the variable: name, location, tier, ip, share (what it exports) and path (where VMs mount it)."
  value       = module.filestore.filestores
}

output "group" {
  description = "The managed instance group: name, zone, size, instance_template (a name), self_link and base_instance_name. The VMs may still be starting."
  value       = module.gpu_mig.group
}

output "ids" {
  description = "What other Terraform names these by: instance_group (a URL, for backends), instance_template (a URL), router, service_account, as paths that start with projects/, and files, the archive's object in the bucket; null for what is not made here."
  value = {
    files             = module.files.archive.object
    instance_group    = module.gpu_mig.instance_group
    instance_template = module.gpu_mig.instance_template
    router            = module.network.router
    service_account   = module.service_account.name
  }
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

output "resize_requests" {
  description = "With flex start, the names of the requests for VMs, in alphabetical order. Google knows what has become of them."
  value       = module.gpu_mig.resize_requests
}

output "service_account_email" {
  description = "The account that the VMs act as; its roles are granted when this is known."
  value       = module.service_account.email
}
