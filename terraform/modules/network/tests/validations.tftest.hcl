mock_provider "google" {}

variables {
  marker         = "aiinfra-cluster=3f9c2a71"
  name_prefix    = "train"
  network_config = "new_network"
  project_id     = "my-project"
  region         = "us-central1"
}

run "refuses_an_unknown_network_configuration" {
  command = plan

  variables {
    network_config = "defualt_network"
  }

  expect_failures = [var.network_config]
}

run "refuses_a_range_with_host_bits" {
  command = plan

  variables {
    ip_range = "10.0.0.1/16"
  }

  expect_failures = [var.ip_range]
}

run "refuses_a_range_that_is_an_address" {
  command = plan

  variables {
    ip_range = "10.0.0.0"
  }

  expect_failures = [var.ip_range]
}

run "refuses_a_range_of_ipv6" {
  command = plan

  variables {
    ip_range = "fd00::/64"
  }

  expect_failures = [var.ip_range]
}

run "refuses_a_secondary_range_with_host_bits" {
  command = plan

  variables {
    secondary_ranges = { pods = "10.16.0.1/12" }
  }

  expect_failures = [var.secondary_ranges]
}

run "refuses_secondary_ranges_in_the_default_network" {
  command = plan

  variables {
    network_config   = "default_network"
    secondary_ranges = { pods = "10.16.0.0/12" }
  }

  expect_failures = [var.secondary_ranges]
}

run "accepts_secondary_ranges_in_a_new_network" {
  command = plan

  variables {
    secondary_ranges = { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
  }
}

run "refuses_an_existing_network_without_saying_which" {
  command = plan

  variables {
    network_config = "existing"
  }

  expect_failures = [var.existing]
}

run "refuses_rules_for_a_network_that_is_made" {
  command = plan

  variables {
    existing = {
      network    = ""
      subnetwork = ""
      rules      = [{ name = "np-internal", network = "projects/my-host/global/networks/my-vpc", source = "10.0.0.0/8", allow = [{ protocol = "tcp", ports = [] }] }]
    }
  }

  expect_failures = [var.existing]
}
