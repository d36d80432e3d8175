# What the root hands to its modules, seen from outside: its outputs.

mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = { master_version = "1.35.7-gke.1222000" }
  }
}

run "a_cluster_of_different_pools_tells_its_names" {
  variables {
    node_pools = {
      train-t4 = { machine_type = "n1-standard-2", zone = "us-central1-c", gpu = { type = "nvidia-tesla-t4", count = 1, driver = "LATEST" }, capacity = { model = "queued" }, size = { min = 0, max = 1 }, disk = { size_gb = 20, type = "pd-balanced" }, local_ssds = 0, compact = false, gpu_networks = null }
      train-l4 = { machine_type = "g2-standard-24", zone = "us-central1-a", gpu = { type = "nvidia-l4", count = 2, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 0, compact = true, gpu_networks = null }
    }
  }

  assert {
    condition     = output.cluster_id == "3f9c2a71"
    error_message = "The marker is ${output.cluster_id}."
  }
  assert {
    condition = alltrue([
      output.cluster.name == "train-gke",
      output.cluster.location == "us-central1",
      output.cluster.workload_pool == "my-project.svc.id.goog",
      output.cluster.version == "1.35.7-gke.1222000",
    ])
    error_message = "The cluster is ${jsonencode(output.cluster)}."
  }
  assert {
    condition = output.node_pools == {
      train-l4 = { name = "train-l4", zone = "us-central1-a", machine_type = "g2-standard-24", mode = "standard", max = 2 }
      train-t4 = { name = "train-t4", zone = "us-central1-c", machine_type = "n1-standard-2", mode = "queued", max = 1 }
    }
    error_message = "The pools are ${jsonencode(output.node_pools)}."
  }
  assert {
    condition     = output.networks == []
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
  assert {
    condition = { for kind, path in output.network : kind => replace(path, "/-[0-9a-f]{8}$/", "") } == {
      network    = "projects/my-project/global/networks/train-net"
      subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet"
    }
    error_message = "The network is ${jsonencode(output.network)}."
  }
  assert {
    condition = output.service_accounts == {
      node     = "train-nodes@my-project.iam.gserviceaccount.com"
      workload = "train-workload@my-project.iam.gserviceaccount.com"
    }
    error_message = "The accounts are ${jsonencode(output.service_accounts)}."
  }
}

run "a_cluster_of_a3_ultra_tells_its_networks_in_order" {
  variables {
    gpu_networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
    node_pools = {
      train-nodepool-1 = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" }
    }
  }

  assert {
    condition = alltrue([
      output.networks[*].kubernetes_name == concat(["gvnic-1"], [for number in range(8) : "rdma-${number}"]),
      output.networks[*].device_mode == concat(["NetDevice"], [for _ in range(8) : "RDMA"]),
      [for network in output.networks : "${network.name} ${replace(network.subnetwork, "/-[0-9a-f]{8}$/", "")}"] == [for number in range(1, 10) : "eth${number} train-gpu-subnet-${number}"],
      toset([for network in output.networks : replace(network.network, "/-[0-9a-f]{8}$/", "")]) == toset(["train-gpu-net-1", "train-gpu-net-2"]),
    ])
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
}

run "a_cluster_of_a3_mega_numbers_its_networks" {
  variables {
    gpu_networks = [for _ in range(8) : { mtu = 8244, nic_type = "GVNIC", subnets = 1 }]
    node_pools = {
      train-nodepool-1 = { machine_type = "a3-megagpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h100-mega-80gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 16, compact = false, gpu_networks = "rdma" }
    }
  }

  assert {
    condition     = [for network in output.networks : "${network.kubernetes_name} ${network.device_mode}"] == [for number in range(1, 9) : "vpc${number} NetDevice"]
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
}

run "a_cluster_of_three_kinds_has_networks_of_each" {
  variables {
    gpu_networks = [for _ in range(8) : { mtu = 8244, nic_type = "GVNIC", subnets = 1 }]
    more_gpu_networks = {
      rdma = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
      tcpx = [for _ in range(4) : { mtu = 8244, nic_type = "GVNIC", subnets = 1 }]
    }
    node_pools = {
      train-mega  = { machine_type = "a3-megagpu-8g", zone = "us-central1-a", gpu = { type = "nvidia-h100-mega-80gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 16, compact = false, gpu_networks = "tcpxo" }
      train-ultra = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = "rdma" }
      train-high  = { machine_type = "a3-highgpu-8g", zone = "us-central1-c", gpu = { type = "nvidia-h100-80gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 16, compact = false, gpu_networks = "tcpx" }
      train-l4    = { machine_type = "g2-standard-24", zone = "us-central1-a", gpu = { type = "nvidia-l4", count = 2, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 0, compact = false, gpu_networks = null }
    }
  }

  assert {
    condition = alltrue([
      jsonencode({ for network in output.networks : network.kind => network.kubernetes_name... }) == jsonencode({
        rdma  = concat(["gvnic-1"], [for number in range(8) : "rdma-${number}"])
        tcpx  = [for number in range(1, 5) : "tcpx-vpc${number}"]
        tcpxo = [for number in range(1, 9) : "vpc${number}"]
      }),
      { for network in output.networks : network.kubernetes_name => "${replace(network.network, "/-[0-9a-f]{8}$/", "")} ${replace(network.subnetwork, "/-[0-9a-f]{8}$/", "")}" if contains(["vpc4", "tcpx-vpc4", "rdma-3"], network.kubernetes_name) } == {
        rdma-3    = "train-gpu-net-rdma2 train-gpu-subnet-rdma5"
        tcpx-vpc4 = "train-gpu-net-tcpx4 train-gpu-subnet-tcpx4"
        vpc4      = "train-gpu-net-4 train-gpu-subnet-4"
      },
    ])
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
}

run "a_cluster_in_a_network_of_a_host_project_makes_nothing_there" {
  variables {
    existing = {
      network    = "projects/my-host/global/networks/my-vpc"
      subnetwork = "projects/my-host/regions/us-central1/subnetworks/nodes"
    }
    gpu_networks = []
    range_names  = { pods = "team-pods", services = "team-services" }
    node_pools   = { train-a = { machine_type = "a2-highgpu-1g", zone = "us-central1-a", gpu = { type = "nvidia-tesla-a100", count = 1, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-balanced" }, local_ssds = 0, compact = false, gpu_networks = null } }
  }

  assert {
    condition     = output.network == { network = var.existing.network, subnetwork = var.existing.subnetwork }
    error_message = "The network is ${jsonencode(output.network)}."
  }
}

run "nodes_have_the_gpu_networks_that_exist_by_their_bare_names" {
  override_data {
    target = data.google_compute_subnetwork.gpus
    values = { network = "https://www.googleapis.com/compute/v1/projects/my-project/global/networks/gpus" }
  }

  variables {
    existing = {
      network    = "projects/my-project/global/networks/my-vpc"
      subnetwork = "projects/my-project/regions/us-central1/subnetworks/nodes"
      interfaces = [{ nic_type = "GVNIC", subnetwork = "projects/my-project/regions/us-central1/subnetworks/gpu-1" }]
    }
    gpu_networks = []
    range_names  = { pods = "team-pods", services = "team-services" }
    node_pools   = { train-a = { machine_type = "a3-megagpu-8g", zone = "us-central1-a", gpu = { type = "nvidia-h100-mega-80gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-balanced" }, local_ssds = 16, compact = false, gpu_networks = "tcpxo" } }
  }

  assert {
    condition     = output.networks == [{ device_mode = "NetDevice", kind = "tcpxo", kubernetes_name = "vpc1", name = "eth1", network = "gpus", subnetwork = "gpu-1" }]
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
}

run "a_cluster_whose_rdma_gke_manages_has_no_network_for_it" {
  variables {
    gpu_networks = []
    node_pools   = { train-a = { machine_type = "a3-ultragpu-8g", zone = "us-central1-a", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, managed_rdma = true } }
  }

  assert {
    condition     = length(output.networks) == 0
    error_message = "The networks are ${jsonencode(output.networks)}."
  }
}

run "the_least_is_a_pool_in_the_zone_of_the_root" {
  variables {
    cluster          = {}
    cluster_id       = null
    ip_ranges        = {}
    labels           = {}
    marker           = null
    node_pools       = { train-l4 = { machine_type = "g2-standard-8", gpu = { type = "nvidia-l4", count = 1 } } }
    range_names      = {}
    region           = null
    secondary_ranges = {}
    state_folder     = null
    system_pool      = {}
  }

  assert {
    condition     = output.cluster_id == "train" && output.cluster.location == "us-central1"
    error_message = "It is ${jsonencode([output.cluster_id, output.cluster])}."
  }
  assert {
    condition     = [for pool in output.node_pools : "${pool.name} ${pool.zone} ${pool.mode} ${pool.max}"] == ["train-l4 us-central1-a standard 1"]
    error_message = "The pools are ${jsonencode(output.node_pools)}."
  }
}
