# Every rule of the variables refuses what it is there to refuse. One run, one
# planted error; everything else is as below.

mock_provider "google" {}

variables {
  cluster           = { location = "us-central1", version = null, release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
  cluster_id        = "3f9c2a71"
  marker            = "aiinfra-cluster=3f9c2a71"
  existing          = { network = "", subnetwork = "" }
  filestores        = []
  secrets           = []
  gcs_mounts        = []
  gpu_networks      = []
  ip_ranges         = { block = "10.0.0.0/12", first = "10.0.0.0/16" }
  secondary_ranges  = { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
  labels            = {}
  more_gpu_networks = {}
  name_prefix       = "train"
  node_pools        = {}
  project_id        = "my-project"
  range_names       = { pods = "pods", services = "services" }
  region            = "us-central1"
  service_account   = { create = true }
  state_folder      = { bucket = "my-state", folder = "train-deployment" }
  system_pool       = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
  zone              = "us-central1-a"
}

run "refuses_a_cluster_in_another_region" {
  command = plan

  variables {
    cluster     = { location = "us-east1", version = null, release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
    system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-east1-b" }
  }

  expect_failures = [var.cluster]
}

run "refuses_a_pool_of_the_system_pools_name" {
  command = plan

  variables {
    node_pools = { train-system = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = null } }
  }

  expect_failures = [var.node_pools]
}

run "refuses_networks_that_no_pool_asks_for" {
  command = plan

  variables {
    gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
    node_pools   = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = null } }
  }

  expect_failures = [var.node_pools]
}

run "refuses_a_pool_that_asks_for_networks_that_are_not_there" {
  command = plan

  variables {
    node_pools = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" } }
  }

  expect_failures = [var.node_pools]
}

run "refuses_more_networks_that_no_pool_asks_for" {
  command = plan

  variables {
    more_gpu_networks = { tcpx = [{ mtu = 8244, nic_type = "GVNIC", subnets = 1 }] }
    node_pools        = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = null } }
  }

  expect_failures = [var.node_pools]
}

run "refuses_a_kind_that_is_no_part_of_a_name" {
  command = plan

  variables {
    more_gpu_networks = { TCPX = [{ mtu = 8244, nic_type = "GVNIC", subnets = 1 }] }
    node_pools        = { train-a = { machine_type = "a3-highgpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h100-80gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 16, compact = false, gpu_networks = "TCPX" } }
  }

  expect_failures = [var.more_gpu_networks]
}

run "refuses_rdma_in_two_zones" {
  command = plan

  variables {
    gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
    node_pools   = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" }, train-b = { machine_type = "a3-ultragpu-8g", zone = "us-central1-c", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" } }
  }

  expect_failures = [var.node_pools]
}

run "accepts_rdma_in_one_zone_beside_other_pools" {
  command = plan

  variables {
    gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
    node_pools   = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" }, train-b = { machine_type = "a3-ultragpu-8g", zone = "us-central1-c", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = null } }
  }
}

run "refuses_a_bucket_and_a_share_at_one_path" {
  command = plan

  variables {
    filestores = [{ path = "/mnt/a", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" }]
    gcs_mounts = [{ bucket = "my-data", path = "/mnt/a" }]
  }

  expect_failures = [var.gcs_mounts]
}

run "refuses_a_state_folder_without_a_name" {
  command = plan

  variables {
    state_folder = { bucket = "my-state", folder = "" }
  }

  expect_failures = [var.state_folder]
}

run "refuses_a_marker_that_is_no_label_value" {
  command = plan

  variables {
    cluster_id = "3F9C"
    marker     = "aiinfra-cluster=3F9C"
  }

  expect_failures = [var.cluster_id]
}

run "refuses_a_label_key_in_upper_case" {
  command = plan

  variables {
    labels = { Team = "ml" }
  }

  expect_failures = [var.labels]
}

run "refuses_a_label_value_with_a_dot" {
  command = plan

  variables {
    labels = { team = "ml.research" }
  }

  expect_failures = [var.labels]
}

run "refuses_64_labels_beside_the_marker" {
  command = plan

  variables {
    labels = { for number in range(64) : "label-${number}" => "value" }
  }

  expect_failures = [var.labels]
}

run "refuses_a_label_that_is_the_marker" {
  command = plan

  variables {
    labels = { aiinfra-cluster = "mine" }
  }

  expect_failures = [var.labels]
}

run "refuses_a_name_prefix_of_22_characters" {
  command = plan

  variables {
    name_prefix = "abcdefghijklmnopqrstuv"
  }

  expect_failures = [var.name_prefix]
}

run "accepts_a_name_prefix_of_21_characters" {
  command = plan

  variables {
    name_prefix = "abcdefghijklmnopqrstu"
  }
}

run "refuses_a_project_id_in_upper_case" {
  command = plan

  variables {
    project_id = "My-Project"
  }

  expect_failures = [var.project_id]
}

run "refuses_a_zone_as_region" {
  command = plan

  variables {
    cluster     = { location = "us-central1-a", version = null, release_channel = "REGULAR", authorized_cidrs = [], ray_operator = false }
    region      = "us-central1-a"
    system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a-a" }
    zone        = "us-central1-a-a"
  }

  expect_failures = [var.region]
}

run "refuses_an_email_for_an_account_that_is_made" {
  command = plan

  variables {
    service_account = { create = true, email = "nodes@my-project.iam.gserviceaccount.com" }
  }

  expect_failures = [var.service_account]
}

run "refuses_a_person_as_service_account" {
  command = plan

  variables {
    service_account = { create = false, email = "someone@example.com" }
  }

  expect_failures = [var.service_account]
}

run "refuses_a_zone_of_another_region" {
  command = plan

  variables {
    zone = "us-east1-b"
  }

  expect_failures = [var.zone]
}

run "a_marker_of_another_cluster" {
  command = plan

  variables {
    marker = "aiinfra-cluster=00000000 gs://bucket/np-deployment"
  }

  expect_failures = [var.marker]
}

run "refuses_networks_for_gpus_beside_a_network_that_exists" {
  command = plan

  variables {
    existing = {
      network    = "projects/my-host/global/networks/my-vpc"
      subnetwork = "projects/my-host/regions/us-central1/subnetworks/nodes"
    }
    gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
    node_pools   = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" } }
  }

  expect_failures = [var.existing]
}
