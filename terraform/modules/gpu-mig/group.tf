resource "google_compute_instance_group_manager" "gpu" {
  name               = "${var.name_prefix}-mig"
  project            = var.project_id
  zone               = var.zone
  description        = local._marker
  base_instance_name = "${var.name_prefix}-vm"
  target_size        = var.group.instance_count

  # The tool waits itself: this wait cannot be interrupted, and while it lasts the
  # group is in no state.
  wait_for_instances = false

  version {
    name              = "default"
    instance_template = google_compute_instance_template.gpu.self_link
  }

  # A new template is for new VMs: running ones, with somebody's training on them,
  # are restarted or replaced only when their owner says so.
  update_policy {
    type                  = "OPPORTUNISTIC"
    minimal_action        = "RESTART"
    replacement_method    = "RECREATE"
    max_surge_fixed       = 0
    max_unavailable_fixed = 1
  }
}
