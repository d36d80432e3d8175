# Every rule of the variables refuses what it is there to refuse. One run, one
# planted error; everything else is as below.

mock_provider "google" {}

variables {
  cluster                = { location = "us-central1", version = null, release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
  cluster_id             = "3f9c2a71"
  marker                 = "aiinfra-cluster=3f9c2a71"
  hold_node_upgrades     = false
  labels                 = {}
  multi_networking       = false
  name_prefix            = "train"
  network                = "projects/my-project/global/networks/train-net"
  node_account_email     = "train-nodes@my-project.iam.gserviceaccount.com"
  pods_range             = "pods"
  project_id             = "my-project"
  services_range         = "services"
  subnetwork             = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet"
  system_pool            = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
  workload_account_email = "train-workload@my-project.iam.gserviceaccount.com"
}

run "refuses_a_cluster_in_a_zone" {
  command = plan

  variables {
    cluster     = { location = "us-central1-a", version = null, release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
    system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a-a" }
  }

  expect_failures = [var.cluster]
}

run "refuses_a_version_that_is_a_prefix" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = "1.35.", release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
  }

  expect_failures = [var.cluster]
}

run "accepts_a_full_version" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
  }
}

run "refuses_an_unknown_release_channel" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = null, release_channel = "FAST", authorized_cidrs = [], ray_operator = false }
  }

  expect_failures = [var.cluster]
}

run "refuses_an_authorized_address_without_its_length" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = null, release_channel = "REGULAR", authorized_cidrs = ["203.0.113.7"], ray_operator = false }
  }

  expect_failures = [var.cluster]
}

run "refuses_an_authorized_network_with_host_bits" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = null, release_channel = "REGULAR", authorized_cidrs = ["203.0.113.7/24"], ray_operator = false }
  }

  expect_failures = [var.cluster]
}

run "accepts_one_authorized_address" {
  command = plan

  variables {
    cluster = { location = "us-central1", version = null, release_channel = "REGULAR", authorized_cidrs = ["203.0.113.7/32"], ray_operator = false }
  }
}

run "refuses_to_hold_upgrades_without_a_release_channel" {
  command = plan

  variables {
    cluster            = { location = "us-central1", version = null, release_channel = "UNSPECIFIED", authorized_cidrs = [], ray_operator = false }
    hold_node_upgrades = true
  }

  expect_failures = [var.hold_node_upgrades]
}

run "accepts_to_hold_upgrades_on_a_release_channel" {
  command = plan

  variables {
    hold_node_upgrades = true
  }
}

run "refuses_a_system_pool_without_a_node" {
  command = plan

  variables {
    system_pool = { machine_type = "e2-standard-4", min = 0, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
  }

  expect_failures = [var.system_pool]
}

run "refuses_a_system_pool_of_fewer_than_its_fewest_nodes" {
  command = plan

  variables {
    system_pool = { machine_type = "e2-standard-4", min = 4, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
  }

  expect_failures = [var.system_pool]
}

run "refuses_a_boot_disk_of_less_than_10_gib" {
  command = plan

  variables {
    system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 9, spot = false, zone = "us-central1-a" }
  }

  expect_failures = [var.system_pool]
}

run "refuses_a_system_pool_in_another_region" {
  command = plan

  variables {
    system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-east1-b" }
  }

  expect_failures = [var.system_pool]
}
