mock_provider "google" {}

variables {
  marker      = "aiinfra-cluster=3f9c2a71"
  ip_block    = "10.0.0.0/12"
  name_prefix = "train"
  networks    = []
  project_id  = "my-project"
  region      = "us-central1"
  zone        = "us-central1-b"
}

run "refuses_a_block_with_host_bits" {
  command = plan

  variables {
    ip_block = "10.1.0.0/12"
  }

  expect_failures = [var.ip_block]
}

run "refuses_a_block_that_is_an_address" {
  command = plan

  variables {
    ip_block = "10.0.0.0"
  }

  expect_failures = [var.ip_block]
}

run "refuses_a_block_whose_parts_are_too_small_for_a_subnetwork" {
  command = plan

  variables {
    ip_block = "10.0.0.0/26"
    networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }]
  }

  expect_failures = [var.ip_block]
}

run "accepts_the_smallest_block" {
  command = plan

  variables {
    ip_block = "10.0.0.0/25"
  }
}

run "refuses_an_mtu_that_no_network_carries" {
  command = plan

  variables {
    networks = [{ mtu = 9000, nic_type = "GVNIC", subnets = 1 }]
  }

  expect_failures = [var.networks]
}

run "refuses_an_unknown_type_of_interface" {
  command = plan

  variables {
    networks = [{ mtu = 8896, nic_type = "VIRTIO_NET", subnets = 1 }]
  }

  expect_failures = [var.networks]
}

run "refuses_a_network_for_rdma_without_a_profile" {
  command = plan

  variables {
    networks = [{ mtu = 8896, nic_type = "MRDMA", subnets = 8 }]
  }

  expect_failures = [var.networks]
}

run "refuses_a_profile_for_rdma_with_another_type_of_interface" {
  command = plan

  variables {
    networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1, profile = "vpc-roce" }]
  }

  expect_failures = [var.networks]
}

run "refuses_a_network_without_subnetworks" {
  command = plan

  variables {
    networks = [{ mtu = 8896, nic_type = "MRDMA", subnets = 0, profile = "vpc-roce" }]
  }

  expect_failures = [var.networks]
}

run "refuses_interfaces_that_share_a_network_without_rdma" {
  command = plan

  variables {
    networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 2 }]
  }

  expect_failures = [var.networks]
}

run "accepts_a_second_network_and_one_for_rdma" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
  }
}

run "refuses_more_interfaces_than_the_block_has_room_for" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
  }

  expect_failures = [var.networks]
}
