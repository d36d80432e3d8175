locals {
  _is_flex = var.capacity.model == "flex_start"

  # How VMs are scheduled, by model: Google's name of it, whether a VM that fails
  # is started again, whether Google ends VMs (which then are deleted, as one that
  # is only stopped keeps its place in the group and its quota), and which
  # reservations may be drawn on, where Google's choice (any that fits) will not do.
  _capacities = {
    flex_start = {
      provisioning_model = "FLEX_START"
      automatic_restart  = false
      ends               = true
      reservations       = [{ type = "NO_RESERVATION", specific = [] }]
    }
    reservation = {
      provisioning_model = "STANDARD"
      automatic_restart  = true
      ends               = false
      reservations = [{
        type     = "SPECIFIC_RESERVATION"
        specific = [{ key = "compute.googleapis.com/reservation-name", values = var.capacity.reservation[*] }]
      }]
    }
    spot = {
      provisioning_model = "SPOT"
      automatic_restart  = false
      ends               = true
      reservations       = []
    }
    standard = {
      provisioning_model = "STANDARD"
      automatic_restart  = true
      ends               = false
      reservations       = []
    }
  }

  _capacity = local._capacities[var.capacity.model]

  # The template wants a name, not a URL.
  _placement = google_compute_resource_policy.placement[*].name
}

# Close together: a policy of the template, but with flex start, where Google takes
# none, a workload policy of the group.
resource "google_compute_resource_policy" "placement" {
  count = var.capacity.compact && !local._is_flex ? 1 : 0

  name        = "${var.name_prefix}-placement"
  project     = var.project_id
  region      = var.region
  description = var.marker

  group_placement_policy {
    collocation = "COLLOCATED"
  }
}

resource "google_compute_resource_policy" "workload" {
  count = var.capacity.compact && local._is_flex ? 1 : 0

  name        = "${var.name_prefix}-workload"
  project     = var.project_id
  region      = var.region
  description = var.marker

  workload_policy {
    type = "HIGH_THROUGHPUT"
  }
}

# The provider returns when Google has taken the request, not when VMs come; and a
# request that has ended makes nothing new, in whatever way it ended.
resource "google_compute_resize_request" "gpu" {
  for_each = var.resize_requests

  name                   = each.key
  project                = var.project_id
  zone                   = var.zone
  instance_group_manager = google_compute_instance_group_manager.gpu.name
  description            = var.marker
  resize_by              = each.value.count

  requested_run_duration {
    seconds = tostring(each.value.run_seconds)
  }

  lifecycle {
    # A request is made once: another text would ask anew.
    ignore_changes = [description]
  }
}
