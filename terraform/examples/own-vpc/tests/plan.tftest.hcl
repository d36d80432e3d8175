mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

run "the_vms_are_in_the_network_that_is_made" {
  command = plan

  assert {
    condition     = output.group.size == 2 && startswith(output.network, "projects/my-project/global/networks/train-net-")
    error_message = "It is ${jsonencode([output.group.size, output.network])}."
  }
}
