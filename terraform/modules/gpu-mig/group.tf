locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)
  _marker     = coalesce(var.marker, "aiinfra-cluster=${local._cluster_id}")
  _region     = coalesce(var.region, regex("^[a-z]+-[a-z]+[0-9]+", var.zone))
}

resource "google_compute_instance_group_manager" "gpu" {
  name               = "${var.name_prefix}-mig"
  project            = var.project_id
  zone               = var.zone
  description        = local._marker
  base_instance_name = "${var.name_prefix}-vm"

  # Requests make a group of flex start grow. Even 0 would take away the VMs that
  # have come.
  target_size = local._is_flex ? null : var.group.instance_count

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

  # A VM of flex start that fails is not made again: only a request gets VMs. Nor is
  # one that powers itself off without work, which is a failure to its group. Written
  # for all others too: left out, a group that was of flex start once would go on so.
  instance_lifecycle_policy {
    default_action_on_failure = local._is_flex || var.capacity.idle_seconds != null ? "DO_NOTHING" : "REPAIR"
  }

  dynamic "resource_policies" {
    for_each = google_compute_resource_policy.workload

    content {
      workload_policy = resource_policies.value.self_link
    }
  }

  # It goes with its VMs, and a hundred of them end later than the provider's 15 minutes.
  timeouts {
    delete = "60m"
  }
}
