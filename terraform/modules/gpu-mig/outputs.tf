output "group" {
  description = "The managed instance group: name, zone, size (VMs wanted), instance_template (the name of the newest), self_link (URL), base_instance_name."
  value = {
    base_instance_name = google_compute_instance_group_manager.gpu.base_instance_name
    instance_template  = google_compute_instance_template.gpu.name
    name               = google_compute_instance_group_manager.gpu.name
    self_link          = google_compute_instance_group_manager.gpu.self_link
    # With flex start the group itself says how many have come.
    size = var.group.instance_count
    zone = google_compute_instance_group_manager.gpu.zone
  }
}

output "image" {
  description = "The image that new VMs boot: project, name, family (its own, also where it was asked for by name) and self_link (URL)."
  value = {
    family    = data.google_compute_image.boot.family
    name      = data.google_compute_image.boot.name
    project   = var.image.project
    self_link = data.google_compute_image.boot.self_link
  }
}

output "instance_group" {
  description = "The URL of the group as load balancers' backends name it; that of its manager is group.self_link."
  value       = google_compute_instance_group_manager.gpu.instance_group
}

output "instance_template" {
  description = "The URL of the newest template."
  value       = google_compute_instance_template.gpu.self_link
}

output "resize_requests" {
  description = "With flex start, the names of the requests for VMs."
  value       = sort([for request in google_compute_resize_request.gpu : request.name])
}
