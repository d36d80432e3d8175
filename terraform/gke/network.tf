locals {
  # The first sixteenth for the first interface, one more for each other.
  _ip_block = "10.0.0.0/12"

  # Beside the block of the nodes. Each node takes 256 addresses for its pods: there is
  # room for 4,096 of them.
  _secondary_ranges = {
    pods     = "10.16.0.0/12"
    services = "10.32.0.0/20"
  }

  # Google has a network for RDMA in each zone that has the machines.
  _gpu_zone = concat([for pool in var.node_pools : pool.zone if pool.gpu_networks], [var.zone])[0]

  _names    = module.gpu_networks.names
  _gvnics   = length([for name in local._names : name if name.nic_type == "GVNIC"])
  _has_rdma = local._gvnics < length(local._names)

  # What the networks are called in Kubernetes: the names that Google's own job files use.
  _networks = [
    for index, name in local._names : {
      device_mode     = name.nic_type == "MRDMA" ? "RDMA" : "NetDevice"
      kubernetes_name = name.nic_type == "MRDMA" ? "rdma-${index - local._gvnics}" : local._has_rdma ? "gvnic-${index + 1}" : "vpc${index + 1}"
      name            = "eth${index + 1}"
      network         = name.network
      subnetwork      = name.subnetwork
    }
  ]
}

module "network" {
  source = "../modules/network"

  marker           = var.marker
  ip_range         = cidrsubnet(local._ip_block, 4, 0)
  name_prefix      = var.name_prefix
  network_config   = "new_network"
  project_id       = var.project_id
  region           = var.region
  secondary_ranges = local._secondary_ranges
}

module "gpu_networks" {
  source = "../modules/gpu-networks"

  marker      = var.marker
  ip_block    = local._ip_block
  name_prefix = var.name_prefix
  networks    = var.gpu_networks
  project_id  = var.project_id
  region      = var.region
  zone        = local._gpu_zone
}
