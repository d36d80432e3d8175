# Where the system's pods, Kueue and the like run: a pool that flex start or queueing
# empties cannot hold them.
resource "google_container_node_pool" "system" {
  name     = "${var.name_prefix}-system"
  project  = var.project_id
  location = google_container_cluster.gke.location
  # Its name, not its id: imported with an id, the pool would be replaced.
  cluster            = google_container_cluster.gke.name
  node_locations     = [var.system_pool.zone]
  initial_node_count = var.system_pool.min
  max_pods_per_node  = var.system_pool.max_pods

  autoscaling {
    location_policy      = "ANY"
    total_max_node_count = var.system_pool.max
    total_min_node_count = var.system_pool.min
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  network_config {
    enable_private_nodes = true
  }

  node_config {
    boot_disk_kms_key = var.cluster.kms_key
    machine_type      = var.system_pool.machine_type
    image_type        = "COS_CONTAINERD"
    disk_size_gb      = var.system_pool.disk_size_gb
    spot              = var.system_pool.spot
    service_account   = var.node_account_email
    oauth_scopes      = local._oauth_scopes
    resource_labels   = local._labels

    gvnic {
      enabled = true
    }

    shielded_instance_config {
      enable_integrity_monitoring = true
      enable_secure_boot          = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  lifecycle {
    # The autoscaler changes it.
    ignore_changes = [initial_node_count]
  }
}
