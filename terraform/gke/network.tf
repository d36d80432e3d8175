locals {
  _given_interfaces = try(var.existing.interfaces, [])

  _secondary_ranges = {
    (var.range_names.pods)     = var.secondary_ranges.pods
    (var.range_names.services) = var.secondary_ranges.services
  }

  # The kind of var.gpu_networks: the one that pools ask for and that has no other place.
  _kinds       = distinct(compact(values(local._node_pools)[*].gpu_networks))
  _first_kinds = [for kind in local._kinds : kind if !contains(keys(var.more_gpu_networks), kind)]

  # Google has a network for RDMA in each zone that has the machines: kind -> zone.
  _gpu_zones = {
    for kind in local._kinds : kind => [for pool in values(local._node_pools) : pool.zone if pool.gpu_networks == kind][0]
  }

  # Kind -> the interfaces in its networks, in order.
  _interfaces = merge(
    { for kind, made in module.more_gpu_networks : kind => made.names },
    { for kind in local._first_kinds : kind => module.gpu_networks.names },
    { for kind in local._kinds : kind => local._existing_interfaces if length(local._existing_interfaces) > 0 },
  )

  # By bare names, as GKE compares them.
  _existing_interfaces = [
    for index, interface in local._given_interfaces : {
      network    = basename(data.google_compute_subnetwork.gpus[index].network)
      nic_type   = interface.nic_type
      subnetwork = basename(interface.subnetwork)
    }
  ]
  _gvnics = { for kind, names in local._interfaces : kind => length([for name in names : name if name.nic_type == "GVNIC"]) }

  # What the networks are called in Kubernetes: the names that Google's own job files use.
  # Two kinds without RDMA would have the same ones, so that the later one adds its own.
  _networks = {
    for kind, names in local._interfaces : kind => [
      for index, name in names : {
        device_mode = name.nic_type == "MRDMA" ? "RDMA" : "NetDevice"
        kind        = kind
        kubernetes_name = (
          name.nic_type == "MRDMA" ? "rdma-${index - local._gvnics[kind]}"
          : local._gvnics[kind] < length(names) ? "gvnic-${index + 1}"
          : contains(local._first_kinds, kind) ? "vpc${index + 1}"
          : "${kind}-vpc${index + 1}"
        )
        name       = "eth${index + 1}"
        network    = name.network
        subnetwork = name.subnetwork
      }
    ]
  }
}

# GKE wants the network beside the subnetwork, which alone is named.
data "google_compute_subnetwork" "gpus" {
  for_each = { for index, interface in local._given_interfaces : index => split("/", interface.subnetwork) }

  name    = each.value[5]
  project = each.value[1]
  region  = each.value[3]
}

module "network" {
  source = "../modules/network"

  existing         = var.existing
  marker           = local._marker
  ip_range         = var.ip_ranges.first
  name_prefix      = var.name_prefix
  network_config   = var.existing == null ? "new_network" : "existing"
  project_id       = var.project_id
  region           = local._region
  secondary_ranges = var.existing == null ? local._secondary_ranges : {}
}

module "gpu_networks" {
  source = "../modules/gpu-networks"

  marker      = local._marker
  ip_block    = var.ip_ranges.block
  name_prefix = var.name_prefix
  networks    = var.gpu_networks
  project_id  = var.project_id
  region      = local._region
  zone        = concat([for kind in local._first_kinds : local._gpu_zones[kind]], [var.zone])[0]
}

# Ranges must differ among the interfaces of one node alone, and none is in two kinds.
module "more_gpu_networks" {
  source   = "../modules/gpu-networks"
  for_each = var.more_gpu_networks

  kind        = each.key
  marker      = local._marker
  ip_block    = var.ip_ranges.block
  name_prefix = var.name_prefix
  networks    = each.value
  project_id  = var.project_id
  region      = local._region
  zone        = local._gpu_zones[each.key]
}
