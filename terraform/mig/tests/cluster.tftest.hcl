# What the root hands to its modules, seen from outside: its outputs.

mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      name         = "pytorch-v1"
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
  mock_resource "google_filestore_instance" {
    defaults = { networks = { ip_addresses = ["10.1.2.2"] } }
  }
  mock_resource "google_monitoring_dashboard" {
    defaults = { id = "projects/123/dashboards/9d900001-aaaa" }
  }
  mock_data "google_compute_default_service_account" {
    defaults = { email = "123-compute@developer.gserviceaccount.com" }
  }
}

run "a_cluster_in_a_new_network_tells_its_names" {
  assert {
    condition     = output.cluster_id == "3f9c2a71"
    error_message = "The marker is ${output.cluster_id}."
  }
  assert {
    condition     = jsonencode(output.interfaces) == jsonencode([{ nic_type = "GVNIC", subnetwork = output.network.subnetwork }])
    error_message = "The interfaces are ${jsonencode(output.interfaces)}."
  }
  assert {
    condition = { for kind, path in output.network : kind => replace(path, "/-[0-9a-f]{8}$/", "") } == {
      network    = "projects/my-project/global/networks/train-net"
      subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet"
    }
    error_message = "The network is ${jsonencode(output.network)}."
  }
  assert {
    condition     = output.service_account_email == "train-nodes@my-project.iam.gserviceaccount.com"
    error_message = "The account is ${output.service_account_email}."
  }
  assert {
    condition = output.image == {
      family    = "pytorch"
      name      = "pytorch-v1"
      project   = "images"
      self_link = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
    error_message = "The image is ${jsonencode(output.image)}."
  }
  assert {
    condition     = output.group.name == "train-mig" && output.group.base_instance_name == "train-vm" && output.group.zone == "us-central1-a" && output.group.size == 2
    error_message = "The group is ${jsonencode(output.group)}."
  }
}

run "the_least_is_vms_of_the_default_network_that_share_no_folder" {
  command = plan

  variables {
    boot_disk      = {}
    capacity       = {}
    cluster_id     = null
    group          = { machine_type = "g2-standard-8" }
    image          = { family = "pytorch" }
    labels         = {}
    marker         = null
    network_config = "default_network"
    region         = null
    startup        = { gpus = { count = 1, accelerator = "nvidia-l4" } }
    state_folder   = null
  }

  assert {
    condition     = output.cluster_id == "train" && output.group.size == 1 && output.group.zone == "us-central1-a"
    error_message = "It is ${jsonencode([output.cluster_id, output.group])}."
  }
  assert {
    condition     = endswith(output.network.subnetwork, "/regions/us-central1/subnetworks/default") && local._external_ip
    error_message = "It is ${jsonencode([output.network, local._external_ip])}."
  }
  assert {
    condition     = nonsensitive(jsondecode(module.startup.metadata["aiinfra-config"]).state) == null && length(module.files.archive.object[*]) == 0
    error_message = "The VMs are told of a folder that is not there."
  }
}

run "another_size_keeps_the_template" {
  variables {
    group = { instance_count = 3, machine_type = "a2-highgpu-2g", external_ip = false }
  }

  assert {
    condition     = output.group.size == 3 && output.group.instance_template == run.a_cluster_in_a_new_network_tells_its_names.group.instance_template
    error_message = "It is ${jsonencode([output.group.size, output.group.instance_template])}."
  }
}

run "a_cluster_in_the_default_network_uses_what_is_there" {
  variables {
    network_config  = "default_network"
    service_account = { create = false }
  }

  assert {
    condition = output.network == {
      network    = "projects/my-project/global/networks/default"
      subnetwork = "projects/my-project/regions/us-central1/subnetworks/default"
    }
    error_message = "The network is ${jsonencode(output.network)}."
  }
  assert {
    condition     = output.service_account_email == "123-compute@developer.gserviceaccount.com"
    error_message = "The account is ${output.service_account_email}."
  }
}

run "a_cluster_in_a_network_of_a_host_project_makes_and_looks_up_nothing_there" {
  variables {
    existing = {
      network    = "projects/my-host/global/networks/my-vpc"
      subnetwork = "projects/my-host/regions/us-central1/subnetworks/gpu-vms"
    }
    network_config = "existing"
    startup        = { files_destination = "/usr/aiinfra/copy", notebook = true, ops_agent = true, ray = { version = "2.54.0" } }
  }

  assert {
    condition     = [output.network.network, output.network.subnetwork] == [var.existing.network, var.existing.subnetwork]
    error_message = "The network is ${jsonencode(output.network)}."
  }
  assert {
    condition     = jsonencode(output.interfaces) == jsonencode(concat([{ nic_type = "GVNIC", subnetwork = var.existing.subnetwork }], var.existing.interfaces))
    error_message = "The interfaces are ${jsonencode(output.interfaces)}."
  }
  assert {
    condition     = length(module.ray_firewall) == 0
    error_message = "Rules are made in somebody else's network."
  }
}

run "a_cluster_in_several_networks_tells_its_interfaces_in_order" {
  variables {
    gpu_networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
    network_config = "multi_nic_network"
  }

  assert {
    condition     = startswith(output.network.network, "projects/my-project/global/networks/train-net-")
    error_message = "The network is ${jsonencode(output.network)}."
  }
  assert {
    condition = [for interface in output.interfaces : "${interface.nic_type} ${replace(basename(interface.subnetwork), "/-[0-9a-f]{8}$/", "")}"] == concat(
      ["GVNIC train-primary-subnet", "GVNIC train-gpu-subnet-1"],
      [for number in range(2, 10) : "MRDMA train-gpu-subnet-${number}"],
    )
    error_message = "The interfaces are ${jsonencode(output.interfaces)}."
  }
  assert {
    condition     = nonsensitive(jsondecode(module.startup.metadata["aiinfra-config"]).interfaces) == 10
    error_message = "A VM expects another number of interfaces than it has."
  }
}

# Each object with all that can be asked for of it.
run "a_cluster_with_everything_tells_its_shares_requests_and_dashboard" {
  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = true }
    files           = { archive = "files.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    filestores      = [{ path = "/mnt/share", tier = "ENTERPRISE", size_gb = 1024, location = "us-central1" }]
    gcs_mounts      = [{ bucket = "data", path = "/mnt/data" }]
    gpu_networks    = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
    group           = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = false }
    network_config  = "multi_nic_network"
    resize_requests = { train-1 = { count = 2, run_seconds = 86400 } }
    startup = {
      command           = "true"
      files_destination = "/usr/aiinfra/copy"
      gpus              = { count = 8, accelerator = "nvidia-h200-141gb" }
      notebook          = true
      ops_agent         = true
      ray               = { version = "2.60.0" }
    }
  }

  assert {
    condition     = output.filestores[*].path == ["/mnt/share"] && output.filestores[*].ip == ["10.1.2.2"] && output.filestores[*].share == ["/share"]
    error_message = "The shares are ${jsonencode(output.filestores)}."
  }
  assert {
    condition     = output.resize_requests == tolist(["train-1"])
    error_message = "The requests are ${jsonencode(output.resize_requests)}."
  }
  assert {
    condition     = output.dashboard.url == "https://console.cloud.google.com/monitoring/dashboards/builder/9d900001-aaaa?project=my-project"
    error_message = "The dashboard is ${jsonencode(output.dashboard)}."
  }
}

run "vms_close_together_by_a_reservation_have_no_requests" {
  variables {
    capacity = { model = "reservation", reservation = "mine", compact = true }
    startup  = { files_destination = "/usr/aiinfra/copy", notebook = false, ops_agent = false }
  }

  assert {
    condition     = length(output.resize_requests) == 0
    error_message = "The requests are ${jsonencode(output.resize_requests)}."
  }
  assert {
    condition     = output.dashboard == null
    error_message = "There is a dashboard of what no agent tells."
  }
}

run "ray_in_the_default_network_is_left_to_the_clusters_own_account" {
  command = plan

  variables {
    network_config = "default_network"
    startup        = { files_destination = "/usr/aiinfra/copy", notebook = false, ops_agent = false, ray = { version = "2.60.0" } }
  }

  assert {
    condition     = one(module.ray_firewall[*].rules).deny == "train-ray-deny-${substr(sha256("default"), 0, 8)}"
    error_message = "The rules are ${jsonencode(module.ray_firewall[*].rules)}."
  }
}

run "slurm_has_rules_of_its_own_name_and_ports" {
  command = plan

  variables {
    network_config = "default_network"
    startup        = { notebook = false, ops_agent = false, slurm = { partition = "g2" } }
  }

  assert {
    condition     = one(module.ray_firewall[*].rules).deny == "train-slurm-deny-${substr(sha256("default"), 0, 8)}"
    error_message = "The rules are ${jsonencode(module.ray_firewall[*].rules)}."
  }
}

# Many VMs act as it: a deny could cut off others, and an allow would let them in.
run "ray_with_the_projects_default_account_has_no_rules" {
  command = plan

  variables {
    network_config  = "default_network"
    service_account = { create = false }
    startup         = { files_destination = "/usr/aiinfra/copy", notebook = false, ops_agent = false, ray = { version = "2.60.0" } }
  }

  assert {
    condition     = length(module.ray_firewall) == 0
    error_message = "The rules are ${jsonencode(module.ray_firewall[*].rules)}."
  }
}

run "without_ray_there_are_no_rules_for_it" {
  command = plan

  assert {
    condition     = length(module.ray_firewall) == 0
    error_message = "The rules are ${jsonencode(module.ray_firewall[*].rules)}."
  }
}
