# Where VMs come from: what each model makes of template and group.

mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

variables {
  boot_disk             = { size_gb = 2000, type = "pd-ssd" }
  capacity              = { model = "standard", compact = false }
  cluster_id            = "3f9c2a71"
  marker                = "aiinfra-cluster=3f9c2a71"
  group                 = { instance_count = 2, machine_type = "a3-highgpu-8g", external_ip = false }
  image                 = { project = "images", family = "pytorch" }
  interfaces            = [{ nic_type = "GVNIC", subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet" }]
  labels                = {}
  metadata              = {}
  metadata_identity     = {}
  name_prefix           = "train"
  project_id            = "my-project"
  region                = "us-central1"
  resize_requests       = {}
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  users_metadata        = {}
  zone                  = "us-central1-a"
}

run "standard_vms_are_started_again_live_on_and_take_any_reservation_that_fits" {
  command = plan

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "STANDARD" && google_compute_instance_template.gpu.scheduling[0].automatic_restart
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.scheduling[0].max_run_duration) == 0 && google_compute_instance_template.gpu.scheduling[0].instance_termination_action == null
    error_message = "VMs end after ${jsonencode(google_compute_instance_template.gpu.scheduling[0].max_run_duration)}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.reservation_affinity) == 0
    error_message = "Reservations: ${jsonencode(google_compute_instance_template.gpu.reservation_affinity)}."
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
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "SPOT" && google_compute_instance_template.gpu.scheduling[0].preemptible
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = !google_compute_instance_template.gpu.scheduling[0].automatic_restart && google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE"
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
    condition     = google_compute_instance_template.gpu.reservation_affinity[0].type == "SPECIFIC_RESERVATION"
    error_message = "The affinity is ${google_compute_instance_template.gpu.reservation_affinity[0].type}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].key == "compute.googleapis.com/reservation-name" && google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].values == tolist(["mine"])
    error_message = "The reservation is ${jsonencode(google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "STANDARD"
    error_message = "The model is ${google_compute_instance_template.gpu.scheduling[0].provisioning_model}."
  }
}

run "vms_bound_to_a_reservation_end_with_it" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", reservation = "mine/reservationBlocks/b", compact = false }
  }

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "RESERVATION_BOUND" && google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE" && google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE"
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.scheduling[0].max_run_duration) == 0 && !google_compute_instance_template.gpu.scheduling[0].preemptible
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.reservation_affinity[0].type == "SPECIFIC_RESERVATION" && google_compute_instance_template.gpu.reservation_affinity[0].specific_reservation[0].values == tolist(["mine/reservationBlocks/b"])
    error_message = "The affinity is ${jsonencode(google_compute_instance_template.gpu.reservation_affinity)}."
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

run "a_flex_start_template_says_all_that_google_asks_of_one" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
  }

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "FLEX_START" && google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE"
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = !google_compute_instance_template.gpu.scheduling[0].automatic_restart && !google_compute_instance_template.gpu.scheduling[0].preemptible
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].max_run_duration[0].seconds == 86400 && google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE"
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.reservation_affinity[0].type == "NO_RESERVATION"
    error_message = "The affinity is ${google_compute_instance_template.gpu.reservation_affinity[0].type}."
  }
}

run "a_flex_start_group_has_no_size_of_its_own_and_makes_nothing_again" {
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
    condition     = google_compute_instance_group_manager.gpu.instance_lifecycle_policy[0].default_action_on_failure == "DO_NOTHING" && !google_compute_instance_group_manager.gpu.wait_for_instances
    error_message = "The policy is ${jsonencode(google_compute_instance_group_manager.gpu.instance_lifecycle_policy)}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.update_policy[0].type == "OPPORTUNISTIC"
    error_message = "The policy is ${google_compute_instance_group_manager.gpu.update_policy[0].type}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.resource_policies) == 0
    error_message = "The template has the policies ${jsonencode(google_compute_instance_template.gpu.resource_policies)}."
  }
}

run "each_request_asks_the_group_for_its_vms_for_a_time" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 2, run_seconds = 86400 }, train-3 = { count = 1, run_seconds = 3600 } }
  }

  assert {
    condition = [for request in google_compute_resize_request.gpu : "${request.name} ${request.resize_by} ${request.requested_run_duration[0].seconds}"] == [
      "train-1 2 86400", "train-3 1 3600",
    ]
    error_message = "The requests are ${jsonencode([for request in google_compute_resize_request.gpu : request.name])}."
  }
  assert {
    condition     = alltrue([for request in google_compute_resize_request.gpu : request.instance_group_manager == "train-mig" && request.zone == "us-central1-a"])
    error_message = "A request is of another group."
  }
  assert {
    condition     = alltrue([for request in google_compute_resize_request.gpu : request.description == "aiinfra-cluster=3f9c2a71"])
    error_message = "A request is without marker."
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
    condition     = google_compute_resource_policy.placement[0].name == "train-placement" && google_compute_resource_policy.placement[0].group_placement_policy[0].collocation == "COLLOCATED"
    error_message = "The policy is ${jsonencode(google_compute_resource_policy.placement[0].group_placement_policy)}."
  }
  assert {
    condition     = google_compute_resource_policy.placement[0].description == "aiinfra-cluster=3f9c2a71" && google_compute_resource_policy.placement[0].region == "us-central1"
    error_message = "The policy is in ${google_compute_resource_policy.placement[0].region}."
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

run "compact_flex_start_vms_have_a_workload_policy_in_their_group" {
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
