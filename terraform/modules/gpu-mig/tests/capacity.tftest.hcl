# Where VMs come from: what each model makes of template and group. M1 and so on are Google's rules
# of flex start, which the module keeps whatever the settings say.

mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

run "standard_vms_are_started_again_live_on_and_take_any_reservation_that_fits" {
  command = plan

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.scheduling[0].provisioning_model == "STANDARD",
      google_compute_instance_template.gpu.scheduling[0].automatic_restart,
      length(google_compute_instance_template.gpu.scheduling[0].max_run_duration) == 0,
      google_compute_instance_template.gpu.scheduling[0].instance_termination_action == null,
      length(google_compute_instance_template.gpu.reservation_affinity) == 0,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.scheduling, google_compute_instance_template.gpu.reservation_affinity])}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.target_size == 2
    error_message = "The group is of ${google_compute_instance_group_manager.gpu.target_size}."
  }
  assert {
    condition     = length(google_compute_resource_policy.placement) + length(google_compute_resource_policy.workload) == 0
    error_message = "VMs are placed by a policy."
  }
}

run "a_run_duration_deletes_vms_of_every_model" {
  command = plan

  variables {
    capacity = { model = "standard", max_run_seconds = 3600, compact = false }
  }

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].max_run_duration[0].seconds == 3600 && google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE"
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
}

run "a_group_whose_vms_power_themselves_off_makes_none_again" {
  command = plan

  variables {
    capacity = { model = "standard", idle_seconds = 7200, compact = false }
  }

  assert {
    condition     = google_compute_instance_group_manager.gpu.instance_lifecycle_policy[0].default_action_on_failure == "DO_NOTHING"
    error_message = "The policy is ${jsonencode(google_compute_instance_group_manager.gpu.instance_lifecycle_policy)}."
  }
}

run "spot_vms_are_preemptible_deleted_and_not_started_again" {
  command = plan

  variables {
    capacity = { model = "spot", compact = false }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.scheduling[0].provisioning_model == "SPOT",
      google_compute_instance_template.gpu.scheduling[0].preemptible,
      !google_compute_instance_template.gpu.scheduling[0].automatic_restart,
      google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE",
    ])
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.target_size == 2
    error_message = "The group is of ${google_compute_instance_group_manager.gpu.target_size}."
  }
}

run "vms_of_a_reservation_come_from_it_and_no_other" {
  command = plan

  variables {
    capacity = { model = "reservation", reservation = "mine", compact = false }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.reservation_affinity[0].type == "SPECIFIC_RESERVATION",
      google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].key == "compute.googleapis.com/reservation-name",
      google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].values == tolist(["mine"]),
      google_compute_instance_template.gpu.scheduling[0].provisioning_model == "STANDARD",
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.reservation_affinity[0].type, google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation, google_compute_instance_template.gpu.scheduling[0].provisioning_model])}."
  }
}

run "vms_bound_to_a_reservation_end_with_it" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", reservation = "mine/reservationBlocks/b", compact = false }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.scheduling[0].provisioning_model == "RESERVATION_BOUND",
      google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE",
      google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE",
      length(google_compute_instance_template.gpu.scheduling[0].max_run_duration) == 0,
      !google_compute_instance_template.gpu.scheduling[0].preemptible,
      google_compute_instance_template.gpu.reservation_affinity[0].type == "SPECIFIC_RESERVATION",
      google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].values == tolist(["mine/reservationBlocks/b"]),
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.scheduling, google_compute_instance_template.gpu.reservation_affinity])}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.target_size == 2 && length(google_compute_resource_policy.placement) + length(google_compute_resource_policy.workload) == 0
    error_message = "The group is of ${google_compute_instance_group_manager.gpu.target_size}, or is placed by a policy."
  }
}

run "bound_vms_stand_close_together_by_a_policy_of_their_group" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", reservation = "mine", compact = true }
  }

  assert {
    condition     = length(google_compute_resource_policy.placement) == 0 && google_compute_resource_policy.workload[0].workload_policy[0].type == "HIGH_THROUGHPUT" && google_compute_resource_policy.workload[0].workload_policy[0].accelerator_topology == null
    error_message = "The policies are ${jsonencode(google_compute_resource_policy.workload)}."
  }
}

run "machines_that_are_parts_of_one_topology_get_it_without_being_asked" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", reservation = "mine", compact = false, topology = "1x72" }
    group    = { instance_count = 18, machine_type = "a4x-highgpu-4g", external_ip = false }
  }

  assert {
    condition     = google_compute_resource_policy.workload[0].workload_policy[0].accelerator_topology == "1x72"
    error_message = "The policies are ${jsonencode(google_compute_resource_policy.workload)}."
  }
  assert {
    condition     = length(google_compute_instance_group_manager.gpu.resource_policies) == 1
    error_message = "The group has ${jsonencode(google_compute_instance_group_manager.gpu.resource_policies)}."
  }
}

run "vms_share_the_placement_of_their_reservation" {
  command = plan

  variables {
    capacity = { model = "reservation", reservation = "mine", compact = false, policies = ["theirs"] }
  }

  assert {
    condition     = google_compute_instance_template.gpu.resource_policies == tolist(["theirs"])
    error_message = "The policies are ${jsonencode(google_compute_instance_template.gpu.resource_policies)}."
  }
}

run "m1_m2_m12_m13_a_flex_start_template_says_all_that_google_asks_of_one" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.scheduling[0].provisioning_model == "FLEX_START",
      google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE",
      !google_compute_instance_template.gpu.scheduling[0].automatic_restart,
      !google_compute_instance_template.gpu.scheduling[0].preemptible,
      google_compute_instance_template.gpu.scheduling[0].max_run_duration[0].seconds == 86400,
      google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE",
      google_compute_instance_template.gpu.reservation_affinity[0].type == "NO_RESERVATION",
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.scheduling, google_compute_instance_template.gpu.reservation_affinity[0].type])}."
  }
}

run "m4_m5_m6_a_flex_start_group_has_no_size_of_its_own_makes_nothing_again_and_rolls_nothing_out" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
  }

  # What Terraform does not set, it leaves as it is.
  override_resource {
    target          = google_compute_instance_group_manager.gpu
    override_during = plan
    values          = { target_size = 7 }
  }

  assert {
    condition     = google_compute_instance_group_manager.gpu.target_size == 7
    error_message = "The size is set to ${google_compute_instance_group_manager.gpu.target_size}."
  }
  assert {
    condition     = output.group.size == 2
    error_message = "Wanted are ${output.group.size} VMs."
  }
  assert {
    condition = alltrue([
      google_compute_instance_group_manager.gpu.instance_lifecycle_policy[0].default_action_on_failure == "DO_NOTHING",
      !google_compute_instance_group_manager.gpu.wait_for_instances,
      google_compute_instance_group_manager.gpu.update_policy[0].type == "OPPORTUNISTIC",
    ])
    error_message = "It is ${jsonencode([google_compute_instance_group_manager.gpu.instance_lifecycle_policy, google_compute_instance_group_manager.gpu.update_policy[0].type])}."
  }
  # Google takes no configuration of all or of single VMs with flex start.
  assert {
    condition = alltrue([
      length(google_compute_instance_group_manager.gpu.all_instances_config) == 0,
      length(google_compute_instance_group_manager.gpu.auto_healing_policies) == 0,
      google_compute_instance_group_manager.gpu.zone == "us-central1-a",
    ])
    error_message = "It is ${jsonencode([google_compute_instance_group_manager.gpu.all_instances_config, google_compute_instance_group_manager.gpu.auto_healing_policies, google_compute_instance_group_manager.gpu.zone])}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.resource_policies) == 0
    error_message = "The template has the policies ${jsonencode(google_compute_instance_template.gpu.resource_policies)}."
  }
}

run "m3_each_request_asks_the_group_for_its_vms_for_a_time" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 2, run_seconds = 86400 }, train-3 = { count = 1, run_seconds = 3600 } }
  }

  assert {
    condition = alltrue([
      [for request in google_compute_resize_request.gpu : "${request.name} ${request.resize_by} ${request.requested_run_duration[0].seconds}"] == [
        "train-1 2 86400", "train-3 1 3600",
      ],
      alltrue([for request in google_compute_resize_request.gpu : request.instance_group_manager == "train-mig" && request.zone == "us-central1-a"]),
      alltrue([for request in google_compute_resize_request.gpu : request.description == "aiinfra-cluster=3f9c2a71"]),
    ])
    error_message = "It is ${jsonencode([[for request in google_compute_resize_request.gpu : request.name], google_compute_resize_request.gpu])}."
  }
  assert {
    condition     = output.resize_requests == tolist(["train-1", "train-3"])
    error_message = "The requests are said to be ${jsonencode(output.resize_requests)}."
  }
}

run "compact_vms_have_a_placement_policy_in_their_template" {
  command = plan

  variables {
    capacity = { model = "standard", compact = true }
  }

  assert {
    condition = alltrue([
      google_compute_resource_policy.placement[0].name == "train-placement",
      google_compute_resource_policy.placement[0].group_placement_policy[0].collocation == "COLLOCATED",
      google_compute_resource_policy.placement[0].description == "aiinfra-cluster=3f9c2a71",
      google_compute_resource_policy.placement[0].region == "us-central1",
    ])
    error_message = "It is ${jsonencode([google_compute_resource_policy.placement[0].group_placement_policy, google_compute_resource_policy.placement[0].region])}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.resource_policies == tolist(["train-placement"])
    error_message = "The template has the policies ${jsonencode(google_compute_instance_template.gpu.resource_policies)}."
  }
  assert {
    condition     = length(google_compute_instance_group_manager.gpu.resource_policies) == 0
    error_message = "The group has a policy too."
  }
}

run "m6_compact_flex_start_vms_have_a_workload_policy_in_their_group" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = true }
    group    = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = false }
  }

  assert {
    condition     = google_compute_resource_policy.workload[0].name == "train-workload" && google_compute_resource_policy.workload[0].workload_policy[0].type == "HIGH_THROUGHPUT"
    error_message = "The policy is ${jsonencode(google_compute_resource_policy.workload[0].workload_policy)}."
  }
  assert {
    condition     = length(google_compute_instance_group_manager.gpu.resource_policies) == 1
    error_message = "The group has no policy."
  }
  assert {
    condition     = length(google_compute_resource_policy.placement) == 0 && length(google_compute_instance_template.gpu.resource_policies) == 0
    error_message = "The template has a policy."
  }
}

run "a_group_that_keeps_its_workload_policy_has_no_other_placement" {
  command = plan

  variables {
    capacity = { model = "spot", compact = true, keeps_policy = true }
    group    = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = false }
  }

  assert {
    condition     = length(google_compute_instance_group_manager.gpu.resource_policies) == 1 && length(google_compute_resource_policy.workload) == 1
    error_message = "The group has ${jsonencode(google_compute_instance_group_manager.gpu.resource_policies)}."
  }
  assert {
    condition     = length(google_compute_resource_policy.placement) == 0 && length(google_compute_instance_template.gpu.resource_policies) == 0
    error_message = "The template has a policy."
  }
}
