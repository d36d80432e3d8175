resource "google_container_cluster" "gke" {
  name                = "${var.name_prefix}-gke"
  project             = var.project_id
  location            = var.cluster.location
  description         = local._marker
  resource_labels     = local._labels
  deletion_protection = false

  # Null: the channel's default when the cluster is made, and no word about it later.
  min_master_version = var.cluster.version

  release_channel {
    channel = var.cluster.release_channel
  }

  network                 = var.network
  subnetwork              = var.subnetwork
  networking_mode         = "VPC_NATIVE"
  datapath_provider       = "ADVANCED_DATAPATH"
  enable_multi_networking = var.multi_networking

  ip_allocation_policy {
    cluster_secondary_range_name  = var.pods_range
    services_secondary_range_name = var.services_range
  }

  private_cluster_config {
    enable_private_nodes = true
  }

  # Who comes in by DNS name is decided by IAM; by address nobody, unless asked.
  control_plane_endpoints_config {
    dns_endpoint_config {
      allow_external_traffic = true
    }
    ip_endpoints_config {
      enabled = local._is_open
    }
  }

  # With the IP endpoints off the provider never sends these, and plans them for ever.
  dynamic "master_authorized_networks_config" {
    for_each = local._is_open ? [true] : []

    content {
      # Else every machine on Google Cloud is let in beside these.
      gcp_public_cidrs_access_enabled = false

      dynamic "cidr_blocks" {
        for_each = var.cluster.authorized_cidrs

        content {
          cidr_block = cidr_blocks.value
        }
      }
    }
  }

  # Written without a key too: left out, secrets would go on needing the one of before.
  database_encryption {
    state    = var.cluster.kms_key == null ? "DECRYPTED" : "ENCRYPTED"
    key_name = var.cluster.kms_key == null ? "" : var.cluster.kms_key
  }

  workload_identity_config {
    workload_pool = local._workload_pool
  }

  enable_shielded_nodes = true

  addons_config {
    gce_persistent_disk_csi_driver_config {
      enabled = true
    }
    gcp_filestore_csi_driver_config {
      enabled = true
    }
    gcs_fuse_csi_driver_config {
      enabled = true
    }

    # Written without it too: left out, it would stay once it was there.
    ray_operator_config {
      enabled = var.cluster.ray_operator

      dynamic "ray_cluster_logging_config" {
        for_each = var.cluster.ray_operator ? [true] : []

        content {
          enabled = true
        }
      }
      dynamic "ray_cluster_monitoring_config" {
        for_each = var.cluster.ray_operator ? [true] : []

        content {
          enabled = true
        }
      }
    }
  }

  logging_config {
    enable_components = ["SYSTEM_COMPONENTS", "WORKLOADS"]
  }

  # DCGM is what the GPUs say of themselves; it reports through managed Prometheus.
  monitoring_config {
    enable_components = ["SYSTEM_COMPONENTS", "DCGM"]

    managed_prometheus {
      enabled = true
    }
  }

  # Google takes an exclusion only beside a window. A day that is over means from now
  # on; a clock's time would be another one at each plan.
  dynamic "maintenance_policy" {
    for_each = var.hold_node_upgrades || var.cluster.maintenance != null ? [true] : []

    content {
      dynamic "daily_maintenance_window" {
        for_each = var.cluster.maintenance == null ? [true] : []

        content {
          start_time = "03:00"
        }
      }
      dynamic "recurring_window" {
        for_each = var.cluster.maintenance[*]

        content {
          recurrence = recurring_window.value.recurrence
          start_time = recurring_window.value.start_time
          end_time   = recurring_window.value.end_time
        }
      }
      dynamic "maintenance_exclusion" {
        for_each = var.hold_node_upgrades ? [true] : []

        content {
          exclusion_name = "no-minor-or-node-upgrades"
          start_time     = "2026-01-01T00:00:00Z"

          exclusion_options {
            scope             = "NO_MINOR_OR_NODE_UPGRADES"
            end_time_behavior = "UNTIL_END_OF_SUPPORT"
          }
        }
      }
    }
  }

  # Idle GPU nodes go sooner than by the default profile: they cost as much as busy ones,
  # and a queue's next job may need their room.
  cluster_autoscaling {
    enabled             = false
    autoscaling_profile = "OPTIMIZE_UTILIZATION"
  }

  # GKE makes no cluster without a first pool, which is deleted at once.
  remove_default_node_pool = true
  initial_node_count       = 1
  node_locations           = [var.system_pool.zone]

  node_config {
    boot_disk_kms_key = var.cluster.kms_key
    service_account   = var.node_account_email
    oauth_scopes      = local._oauth_scopes

    shielded_instance_config {
      enable_integrity_monitoring = true
      enable_secure_boot          = true
    }
  }

  lifecycle {
    # The first two are about the pool that is gone. Each pool names its own zone: a change of
    # the cluster's would move the nodes of all of them. The API answers the last in newer
    # fields, by which the provider sees a difference in some cases. The description is
    # written once, as another text would replace the cluster; and multi-networking is
    # turned on when a cluster is made or never.
    ignore_changes = [description, enable_multi_networking, initial_node_count, node_config, node_locations, private_cluster_config]

    precondition {
      condition     = !var.cluster.ray_operator || try(local._numbers.chosen >= local._numbers.floor, true)
      error_message = "The Ray operator needs GKE ${local._floor} or newer; received ${jsonencode(var.cluster.version)}. The version prefix \"1.35.\" would pass."
    }
  }
}
