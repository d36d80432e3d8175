mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      name         = "pytorch-v1"
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

run "the_group_is_named_marked_not_waited_for_and_leaves_running_vms_alone" {
  command = plan

  assert {
    condition     = google_compute_instance_group_manager.gpu.name == "train-mig" && google_compute_instance_group_manager.gpu.base_instance_name == "train-vm"
    error_message = "The names are ${google_compute_instance_group_manager.gpu.name} and ${google_compute_instance_group_manager.gpu.base_instance_name}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.description == "aiinfra-cluster=3f9c2a71"
    error_message = "The description is ${google_compute_instance_group_manager.gpu.description}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.zone == "us-central1-a" && google_compute_instance_group_manager.gpu.target_size == 2
    error_message = "The group is of ${google_compute_instance_group_manager.gpu.target_size} in ${google_compute_instance_group_manager.gpu.zone}."
  }
  assert {
    condition     = !google_compute_instance_group_manager.gpu.wait_for_instances
    error_message = "An apply waits for VMs and cannot be interrupted."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.update_policy[0].type == "OPPORTUNISTIC"
    error_message = "The policy is ${google_compute_instance_group_manager.gpu.update_policy[0].type}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.update_policy[0].minimal_action == "RESTART" && google_compute_instance_group_manager.gpu.update_policy[0].replacement_method == "RECREATE"
    error_message = "The policy is ${jsonencode(google_compute_instance_group_manager.gpu.update_policy)}."
  }
  assert {
    condition     = google_compute_instance_group_manager.gpu.update_policy[0].max_surge_fixed == 0 && google_compute_instance_group_manager.gpu.update_policy[0].max_unavailable_fixed == 1
    error_message = "The policy is ${jsonencode(google_compute_instance_group_manager.gpu.update_policy)}."
  }
}
