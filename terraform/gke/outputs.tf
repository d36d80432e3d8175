output "cluster" {
  description = "The cluster: name, location, version, dns_endpoint (a host name, reached by https with a token) and workload_pool."
  value       = module.gke_cluster.cluster
}

output "cluster_id" {
  description = "Value of the marker `aiinfra-cluster` on everything that was made."
  value       = local._cluster_id
}

output "filestores" {
  description = "The Filestore shares, in order of the variable: name, location, tier, ip, share (what it exports) and path (where pods mount it)."
  value       = module.filestore.filestores
}

output "ids" {
  description = "What other Terraform names these by: cluster, node_pools and instance_groups (lists of URLs) by a pool's name, router, service_account (of nodes) and workload_account, as paths that start with projects/, and files, the archive's object in the bucket; null for what is not made here."
  value = {
    cluster          = module.gke_cluster.id
    files            = module.files.archive.object
    instance_groups  = { for name, made in module.gke_nodepool : name => made.instance_group_urls }
    node_pools       = { for name, made in module.gke_nodepool : name => made.id }
    router           = module.network.router
    service_account  = module.service_account.name
    workload_account = module.workload_account.name
  }
}

output "mounts" {
  description = "The buckets as a list of the storage contract: remote_path (the bucket), local_mount, type and options; pods have access when this is ready."
  value       = module.gcs_mounts.mounts
}

output "network" {
  description = "Where the nodes' first interface is: network and subnetwork, as paths that start with projects/."
  value = {
    network    = module.network.network
    subnetwork = module.network.subnetwork
  }
}

output "networks" {
  description = "The networks of the nodes' interfaces after the first, in order within each kind: kind, name (the interface on the node), kubernetes_name, network and subnetwork (bare names), and device_mode, NetDevice or RDMA."
  value       = flatten(values(local._networks))
}

output "node_pools" {
  description = "The GPU pools by name: name, zone, machine_type, mode (how nodes are got) and max, the most nodes. Nodes may still be starting."
  value       = { for name, made in module.gke_nodepool : name => made.pool }
}

output "service_accounts" {
  description = "The emails of the accounts that nodes (node) and pods (workload) act as; their roles are granted when these are known."
  value = {
    node     = module.service_account.email
    workload = module.workload_account.email
  }
}
