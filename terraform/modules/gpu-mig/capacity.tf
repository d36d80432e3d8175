locals {
  _is_flex  = var.capacity.model == "flex_start"
  _is_bound = var.capacity.model == "reservation_bound"

  # Both the VMs of a plain reservation and those bound to theirs name it.
  _named = [{
    type     = "SPECIFIC_RESERVATION"
    specific = [{ key = "compute.googleapis.com/reservation-name", values = var.capacity.reservation[*] }]
  }]

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
      reservations       = local._named
    }
    reservation_bound = {
      provisioning_model = "RESERVATION_BOUND"
      automatic_restart  = true
      ends               = true
      reservations       = local._named
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

  # Close together: a policy of the template, but with flex start and bound to a
  # reservation, where a group takes a workload policy in its place, and keeps it as
  # long as it has VMs. Machines that are parts of one topology need such a policy to
  # work at all.
  _has_workload = anytrue([
    var.capacity.compact && (local._is_flex || local._is_bound),
    var.capacity.keeps_policy,
    var.capacity.topology != null,
  ])
  _has_placement = var.capacity.compact && !local._has_workload

  # The template wants names, not URLs. VMs share the policies of their reservation.
  _placement = concat(google_compute_resource_policy.placement[*].name, var.capacity.policies)
}

resource "google_compute_resource_policy" "placement" {
  count = local._has_placement ? 1 : 0

  name        = "${var.name_prefix}-placement"
  project     = var.project_id
  region      = local._region
  description = local._marker

  group_placement_policy {
    collocation = "COLLOCATED"
  }

  lifecycle {
    # Written once: the provider sends a changed policy whole, and Google changes none
    # that is in use.
    ignore_changes = [description]
  }
}

resource "google_compute_resource_policy" "workload" {
  count = local._has_workload ? 1 : 0

  name        = "${var.name_prefix}-workload"
  project     = var.project_id
  region      = local._region
  description = local._marker

  workload_policy {
    type                 = "HIGH_THROUGHPUT"
    accelerator_topology = var.capacity.topology
  }

  lifecycle {
    # As above.
    ignore_changes = [description]
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
  description            = local._marker
  resize_by              = each.value.count

  requested_run_duration {
    seconds = tostring(each.value.run_seconds)
  }

  lifecycle {
    # A request is made once: another text would ask anew.
    ignore_changes = [description]
  }
}
