# Every rule of the variables refuses what it is there to refuse. One run, one
# planted error; everything else is as below.

mock_provider "google" {}

variables {
  boot_disk       = { size_gb = 2000, type = "pd-ssd" }
  capacity        = { model = "standard", compact = false }
  cluster_id      = "3f9c2a71"
  marker          = "aiinfra-cluster=3f9c2a71"
  existing        = { network = "", subnetwork = "" }
  files           = {}
  filestores      = []
  gcs_mounts      = []
  gcs_options     = []
  gpu_networks    = []
  ip_ranges       = { block = "10.0.0.0/12", first = "10.0.0.0/16" }
  group           = { instance_count = 1, machine_type = "a2-highgpu-2g", external_ip = false }
  image           = { project = "images", family = "pytorch" }
  labels          = {}
  metadata        = {}
  name_prefix     = "train"
  network_config  = "new_network"
  project_id      = "my-project"
  region          = "us-central1"
  resize_requests = {}
  secrets         = []
  service_account = { create = true }
  startup         = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = true, ops_agent = true }
  startup_command = ""
  state_folder    = { bucket = "state", folder = "train-deployment" }
  zone            = "us-central1-a"
}

run "refuses_a_boot_disk_of_less_than_10_gib" {
  command = plan

  variables {
    boot_disk = { size_gb = 9, type = "pd-ssd" }
  }

  expect_failures = [var.boot_disk]
}

run "refuses_a_boot_disk_of_more_than_65536_gib" {
  command = plan

  variables {
    boot_disk = { size_gb = 65537, type = "pd-ssd" }
  }

  expect_failures = [var.boot_disk]
}

run "refuses_a_boot_disk_of_half_a_gib" {
  command = plan

  variables {
    boot_disk = { size_gb = 100.5, type = "pd-ssd" }
  }

  expect_failures = [var.boot_disk]
}

run "refuses_a_local_ssd_as_boot_disk" {
  command = plan

  variables {
    boot_disk = { size_gb = 375, type = "local-ssd" }
  }

  expect_failures = [var.boot_disk]
}

run "refuses_a_marker_that_is_no_label_value" {
  command = plan

  variables {
    cluster_id = "3F9C"
    marker     = "aiinfra-cluster=3F9C"
  }

  expect_failures = [var.cluster_id]
}

run "refuses_an_empty_marker" {
  command = plan

  variables {
    cluster_id = ""
  }

  expect_failures = [var.cluster_id]
}

run "refuses_a_group_of_no_vms" {
  command = plan

  variables {
    group = { instance_count = 0, machine_type = "a2-highgpu-2g", external_ip = false }
  }

  expect_failures = [var.group]
}

run "refuses_a_group_of_half_a_vm" {
  command = plan

  variables {
    group = { instance_count = 1.5, machine_type = "a2-highgpu-2g", external_ip = false }
  }

  expect_failures = [var.group]
}

run "refuses_a_machine_type_that_is_a_url" {
  command = plan

  variables {
    group = { instance_count = 1, machine_type = "zones/us-central1-a/machineTypes/a2-highgpu-2g", external_ip = false }
  }

  expect_failures = [var.group]
}

run "refuses_gpus_attached_to_a_machine_type_that_brings_its_own" {
  command = plan

  variables {
    group = { instance_count = 1, machine_type = "a2-highgpu-2g", external_ip = false, gpu = { type = "nvidia-tesla-t4", count = 1 } }
  }

  expect_failures = [var.group]
}

run "refuses_an_n1_machine_type_without_gpus" {
  command = plan

  variables {
    group = { instance_count = 1, machine_type = "n1-standard-8", external_ip = false }
  }

  expect_failures = [var.group]
}

run "refuses_no_gpus_for_an_n1_machine_type" {
  command = plan

  variables {
    group = { instance_count = 1, machine_type = "n1-standard-8", external_ip = false, gpu = { type = "nvidia-tesla-t4", count = 0 } }
  }

  expect_failures = [var.group]
}

run "refuses_a_metadata_key_with_a_blank" {
  command = plan

  variables {
    metadata = { "my key" = "value" }
  }

  expect_failures = [var.metadata]
}

run "refuses_an_image_by_family_and_by_name" {
  command = plan

  variables {
    image = { project = "images", family = "pytorch", name = "pytorch-v1" }
  }

  expect_failures = [var.image]
}

run "refuses_an_image_by_neither_family_nor_name" {
  command = plan

  variables {
    image = { project = "images" }
  }

  expect_failures = [var.image]
}

run "refuses_a_label_key_in_upper_case" {
  command = plan

  variables {
    labels = { Team = "ml" }
  }

  expect_failures = [var.labels]
}

run "refuses_a_label_key_of_64_characters" {
  command = plan

  variables {
    labels = { (join("", [for _ in range(64) : "a"])) = "ml" }
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

run "refuses_a_name_prefix_of_25_characters" {
  command = plan

  variables {
    name_prefix = "abcdefghijklmnopqrstuvwxy"
  }

  expect_failures = [var.name_prefix]
}

run "refuses_a_name_prefix_that_starts_with_a_digit" {
  command = plan

  variables {
    name_prefix = "1train"
  }

  expect_failures = [var.name_prefix]
}

run "refuses_a_name_prefix_that_ends_with_a_hyphen" {
  command = plan

  variables {
    name_prefix = "train-"
  }

  expect_failures = [var.name_prefix]
}

run "refuses_several_networks_without_saying_which" {
  command = plan

  variables {
    network_config = "multi_nic_network"
  }

  expect_failures = [var.network_config]
}

run "accepts_several_networks" {
  command = plan

  variables {
    gpu_networks   = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }]
    network_config = "multi_nic_network"
  }
}

run "refuses_gpu_networks_where_there_are_none" {
  command = plan

  variables {
    gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }]
  }

  expect_failures = [var.network_config]
}

run "refuses_an_existing_network_without_saying_which" {
  command = plan

  variables {
    network_config = "existing"
  }

  expect_failures = [var.network_config]
}

run "refuses_an_unknown_network_configuration" {
  command = plan

  variables {
    network_config = "my_network"
  }

  expect_failures = [var.network_config]
}

run "refuses_a_project_id_in_upper_case" {
  command = plan

  variables {
    project_id = "My-Project"
  }

  expect_failures = [var.project_id]
}

run "refuses_a_project_number" {
  command = plan

  variables {
    project_id = "123456789012"
  }

  expect_failures = [var.project_id]
}

run "refuses_a_zone_as_region" {
  command = plan

  variables {
    region = "us-central1-a"
    zone   = "us-central1-a-a"
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

run "refuses_the_whole_bucket_as_the_deployments_folder" {
  command = plan

  variables {
    state_folder = { bucket = "state", folder = "" }
  }

  expect_failures = [var.state_folder]
}

run "refuses_a_zone_of_another_region" {
  command = plan

  variables {
    zone = "us-east1-b"
  }

  expect_failures = [var.zone]
}

run "refuses_a_region_as_zone" {
  command = plan

  variables {
    zone = "us-central1"
  }

  expect_failures = [var.zone]
}

run "refuses_a_zone_without_an_ending" {
  command = plan

  variables {
    zone = "us-central1-"
  }

  expect_failures = [var.zone]
}

run "accepts_a_zone_of_the_ai_form" {
  command = plan

  variables {
    zone = "us-central1-ai1a"
  }
}

run "accepts_a_domain_scoped_project" {
  command = plan

  variables {
    project_id = "example.com:my-project"
  }
}

run "accepts_labels_in_other_scripts" {
  command = plan

  variables {
    labels = { "équipe" = "запуск" }
  }
}

run "accepts_a_name_prefix_of_24_characters" {
  command = plan

  variables {
    name_prefix = "abcdefghijklmnopqrstuvwx"
  }
}

run "accepts_the_greatest_boot_disk" {
  command = plan

  variables {
    boot_disk = { size_gb = 65536, type = "hyperdisk-balanced" }
  }
}

run "accepts_63_labels_beside_the_marker" {
  command = plan

  variables {
    labels = { for number in range(63) : "label-${number}" => "" }
  }
}

run "a_marker_of_another_cluster" {
  command = plan

  variables {
    marker = "aiinfra-cluster=00000000 gs://bucket/np-deployment"
  }

  expect_failures = [var.marker]
}
