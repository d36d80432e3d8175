locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)
  _marker     = coalesce(var.marker, "aiinfra-cluster=${local._cluster_id}")
  _region     = coalesce(var.region, regex("^[a-z]+-[a-z]+[0-9]+", var.zone))

  _cluster     = merge(var.cluster, { location = local._region })
  _system_pool = merge(var.system_pool, { zone = coalesce(var.system_pool.zone, var.zone) })
  _node_pools  = { for name, pool in var.node_pools : name => merge(pool, { zone = coalesce(pool.zone, var.zone) }) }

  # An upgrade of nodes ends what runs on them. Those that jobs wait for are held always,
  # others where no window was asked for; off a channel the pools themselves say no.
  _hold_node_upgrades = var.cluster.release_channel != "UNSPECIFIED" && (var.cluster.maintenance == null || anytrue([
    for pool in local._node_pools : can(regex("flex_start|queued", pool.capacity.model))
  ]))
}

module "gke_cluster" {
  source = "../modules/gke-cluster"

  cluster                = local._cluster
  cluster_id             = local._cluster_id
  hold_node_upgrades     = local._hold_node_upgrades
  labels                 = var.labels
  multi_networking       = length(var.gpu_networks) + length(var.more_gpu_networks) + length(local._given_interfaces) > 0 || anytrue(values(local._node_pools)[*].managed_rdma)
  marker                 = local._marker
  name_prefix            = var.name_prefix
  network                = module.network.network
  node_account_email     = module.service_account.email
  pods_range             = var.range_names.pods
  project_id             = var.project_id
  services_range         = var.range_names.services
  subnetwork             = module.network.subnetwork
  system_pool            = local._system_pool
  workload_account_email = module.workload_account.email
}

module "gke_nodepool" {
  source   = "../modules/gke-nodepool"
  for_each = local._node_pools

  cluster               = module.gke_cluster.control_plane
  cluster_id            = local._cluster_id
  hold_upgrades         = var.cluster.maintenance == null
  labels                = var.labels
  marker                = local._marker
  name                  = each.key
  networks              = each.value.gpu_networks == null ? [] : local._interfaces[each.value.gpu_networks]
  pool                  = each.value
  project_id            = var.project_id
  region                = local._region
  service_account_email = module.service_account.email
}
