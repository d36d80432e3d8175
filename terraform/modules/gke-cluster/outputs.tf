# Whoever uses the cluster needs the system's pods, so it waits for their nodes.
output "cluster" {
  description = "The cluster: name, location, version, dns_endpoint (a host name, reached by https with a token) and workload_pool."
  value = {
    dns_endpoint  = google_container_cluster.gke.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint
    location      = google_container_cluster.gke.location
    name          = google_container_cluster.gke.name
    version       = google_container_cluster.gke.master_version
    workload_pool = local._workload_pool
  }
  depends_on = [google_container_node_pool.system, google_service_account_iam_member.pods]
}

# GPU pools need no more than the control plane: they grow beside the system's pool.
output "control_plane" {
  description = "What a node pool joins: name, location, version and release_channel; ready before the system pool."
  value = {
    location        = google_container_cluster.gke.location
    name            = google_container_cluster.gke.name
    release_channel = var.cluster.release_channel
    version         = google_container_cluster.gke.master_version
  }
}

output "id" {
  description = "The cluster's id, projects/P/locations/L/clusters/C, as other resources name it; ready before the system pool."
  value       = google_container_cluster.gke.id
}

output "self_link" {
  description = "The cluster's URL."
  value       = google_container_cluster.gke.self_link
}
