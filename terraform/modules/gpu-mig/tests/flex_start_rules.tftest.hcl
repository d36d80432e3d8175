# Google's rules of flex start that the module keeps whatever the settings say;
# the others are the settings' and the tool's to keep.

mock_provider "google" {
  mock_resource "google_compute_instance_group_manager" {
    defaults = {
      target_size = 7
    }
  }

  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      name         = "pytorch-v1"
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

variables {
  boot_disk             = { size_gb = 2000, type = "pd-ssd" }
  capacity              = { model = "flex_start", max_run_seconds = 172800, compact = false }
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
  resize_requests       = { train-1 = { count = 2, run_seconds = 172800 } }
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  users_metadata        = {}
  zone                  = "us-central1-a"
}

run "m1_m13_the_template_says_flex_start_no_restart_deletion_and_a_run_duration" {
  command = plan

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].provisioning_model == "FLEX_START"
    error_message = "Without the model, VMs come up as ordinary ones; it is ${google_compute_instance_template.gpu.scheduling[0].provisioning_model}."
  }
  assert {
    condition     = !google_compute_instance_template.gpu.scheduling[0].automatic_restart && google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE"
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].instance_termination_action == "DELETE" && google_compute_instance_template.gpu.scheduling[0].max_run_duration[0].seconds == 172800
    error_message = "The scheduling is ${jsonencode(google_compute_instance_template.gpu.scheduling)}."
  }
}

run "m2_m12_the_template_draws_on_no_reservation_and_is_not_spot" {
  command = plan

  assert {
    condition     = google_compute_instance_template.gpu.reservation_affinity[0].type == "NO_RESERVATION"
    error_message = "The affinity is ${jsonencode(google_compute_instance_template.gpu.reservation_affinity)}."
  }
  assert {
    condition     = !google_compute_instance_template.gpu.scheduling[0].preemptible
    error_message = "VMs of flex start are not preemptible."
  }
}

run "m3_a_request_runs_as_long_as_its_template_says" {
  command = plan

  assert {
    condition     = google_compute_resize_request.gpu["train-1"].requested_run_duration[0].seconds == "172800" && google_compute_resize_request.gpu["train-1"].resize_by == 2
    error_message = "The request is ${jsonencode(google_compute_resize_request.gpu["train-1"])}."
  }
}

# Applied, as a size that is left to Google is known then only.
run "m4_the_group_has_no_size_does_nothing_on_failure_and_is_not_waited_for" {
  assert {
    condition     = google_compute_instance_group_manager.gpu.target_size == 7
    error_message = "The configuration has a size, ${google_compute_instance_group_manager.gpu.target_size}, to which Google would shrink the group."
  }

  assert {
    condition     = google_compute_instance_group_manager.gpu.instance_lifecycle_policy[0].default_action_on_failure == "DO_NOTHING"
    error_message = "The policy is ${jsonencode(google_compute_instance_group_manager.gpu.instance_lifecycle_policy)}."
  }
  assert {
    condition     = !google_compute_instance_group_manager.gpu.wait_for_instances
    error_message = "An apply would wait for VMs that a queue decides on."
  }
}

run "m5_m6_the_group_is_of_one_zone_and_rolls_nothing_out" {
  command = plan

  assert {
    condition     = google_compute_instance_group_manager.gpu.zone == "us-central1-a" && google_compute_instance_group_manager.gpu.update_policy[0].type == "OPPORTUNISTIC"
    error_message = "The group is in ${google_compute_instance_group_manager.gpu.zone}, with ${jsonencode(google_compute_instance_group_manager.gpu.update_policy)}."
  }
  assert {
    condition     = length(google_compute_instance_group_manager.gpu.all_instances_config) == 0 && length(google_compute_instance_group_manager.gpu.auto_healing_policies) == 0
    error_message = "Google takes no configuration of all or of single VMs with flex start."
  }
}

run "m6_vms_close_together_have_a_workload_policy_and_no_placement_policy" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 172800, compact = true }
    group    = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = false }
  }

  assert {
    condition     = length(google_compute_resource_policy.placement) == 0 && length(google_compute_resource_policy.workload) == 1
    error_message = "Flex start takes a workload policy alone."
  }
  assert {
    condition     = length(google_compute_instance_group_manager.gpu.resource_policies) == 1
    error_message = "The group has ${jsonencode(google_compute_instance_group_manager.gpu.resource_policies)}."
  }
}
