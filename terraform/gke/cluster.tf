locals {
  # An upgrade of nodes ends what runs on them. Those that jobs wait for are held always,
  # others where no window was asked for; off a channel the pools themselves say no.
  _hold_node_upgrades = var.cluster.release_channel != "UNSPECIFIED" && (var.cluster.maintenance == null || anytrue([
    for pool in var.node_pools : can(regex("flex_start|queued", pool.capacity.model))
  ]))
}

module "gke_cluster" {
  source = "../modules/gke-cluster"

  cluster                = var.cluster
  cluster_id             = var.cluster_id
  hold_node_upgrades     = local._hold_node_upgrades
  labels                 = var.labels
  multi_networking       = length(var.gpu_networks) + length(var.more_gpu_networks) + length(var.existing.interfaces) > 0 || anytrue(values(var.node_pools)[*].managed_rdma)
  marker                 = var.marker
  name_prefix            = var.name_prefix
  network                = module.network.network
  node_account_email     = module.service_account.email
  pods_range             = var.range_names.pods
  project_id             = var.project_id
  services_range         = var.range_names.services
  subnetwork             = module.network.subnetwork
  system_pool            = var.system_pool
  workload_account_email = module.workload_account.email
}

module "gke_nodepool" {
  source   = "../modules/gke-nodepool"
  for_each = var.node_pools

  cluster               = module.gke_cluster.control_plane
  cluster_id            = var.cluster_id
  hold_upgrades         = var.cluster.maintenance == null
  labels                = var.labels
  marker                = var.marker
  name                  = each.key
  networks              = each.value.gpu_networks == null ? [] : local._interfaces[each.value.gpu_networks]
  pool                  = each.value
  project_id            = var.project_id
  region                = var.region
  service_account_email = module.service_account.email
}
