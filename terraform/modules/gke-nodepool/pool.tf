locals {
  _is_flex   = startswith(var.pool.capacity.model, "flex_start")
  _is_queued = endswith(var.pool.capacity.model, "queued")
  _is_dws    = local._is_flex || local._is_queued

  # What the API takes; a pool that leaves it out is replaced once the API answers
  # with its own choice.
  _reservations = {
    standard    = "ANY_RESERVATION"
    reservation = "SPECIFIC_RESERVATION"
  }

  # Google's floors: flex start for GPUs, and a limit to how long queued nodes run.
  _floor = local._is_flex ? "1.32.2-gke.1652000" : "1.28.5-gke.1355000"

  # Versions as numbers, to compare them: 1.32.2-gke.1652000 is 32 0002 0001652000.
  _numbers = {
    for name, version in { chosen = var.cluster.version, floor = local._floor } : name => sum([
      for index, part in regex("^1\\.([0-9]+)\\.([0-9]+)-gke\\.([0-9]+)", version) :
      tonumber(part) * pow(10, [14, 10, 0][index])
    ])
  }
}

resource "google_container_node_pool" "gpu" {
  name     = var.name
  project  = var.project_id
  location = var.cluster.location
  # Its name, not its id: imported with an id, the pool would be replaced.
  cluster        = var.cluster.name
  node_locations = [var.pool.zone]
  version        = var.pool.version

  max_pods_per_node = var.pool.max_pods

  # Null in turn: with both, the provider fails only at apply.
  node_count         = var.pool.size.count
  initial_node_count = var.pool.size.count == null ? var.pool.size.min : null

  dynamic "autoscaling" {
    for_each = var.pool.size.count == null ? [var.pool.size] : []

    content {
      location_policy      = "ANY"
      total_max_node_count = autoscaling.value.max
      total_min_node_count = autoscaling.value.min
    }
  }

  management {
    auto_repair = !local._is_dws
    # On a release channel the API refuses false; there the cluster's maintenance
    # exclusion keeps nodes from upgrades.
    auto_upgrade = var.cluster.release_channel != "UNSPECIFIED" || !(local._is_queued || var.hold_upgrades)
  }

  # An upgrade takes one node after the other, and needs none of a kind that is hard to
  # get. Pools of flex start and queues have a strategy that GKE chooses.
  dynamic "upgrade_settings" {
    for_each = local._is_dws ? [] : [true]

    content {
      strategy        = "SURGE"
      max_surge       = 0
      max_unavailable = 1
    }
  }

  dynamic "queued_provisioning" {
    for_each = local._is_queued ? [true] : []

    content {
      enabled = true
    }
  }

  dynamic "placement_policy" {
    for_each = var.pool.compact || var.pool.policy != null ? [true] : []

    content {
      type        = "COMPACT"
      policy_name = one(concat(google_compute_resource_policy.compact[*].name, var.pool.policy[*]))
    }
  }

  network_config {
    enable_private_nodes        = true
    accelerator_network_profile = var.pool.managed_rdma ? "auto" : null

    dynamic "additional_node_network_configs" {
      for_each = var.networks

      content {
        network    = additional_node_network_configs.value.network
        subnetwork = additional_node_network_configs.value.subnetwork
      }
    }
  }

  node_config {
    boot_disk_kms_key = var.pool.disk.kms_key
    machine_type      = var.pool.machine_type
    image_type        = "COS_CONTAINERD"
    disk_size_gb      = var.pool.disk.size_gb
    disk_type         = var.pool.disk.type
    flex_start        = local._is_flex ? true : null
    max_run_duration  = var.pool.capacity.max_run_seconds == null ? null : "${var.pool.capacity.max_run_seconds}s"
    spot              = var.pool.capacity.model == "spot"
    service_account   = var.service_account_email
    # What the account may do is said by its roles.
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = merge(var.labels, { aiinfra-cluster = var.cluster_id })
    # GKE adds a taint like the first but not the label, which jobs select by; DRANET's driver runs where the other is.
    labels = { for it, on in { gke-queued = local._is_queued, gke-networking-dra-driver = var.pool.managed_rdma } : "cloud.google.com/${it}" => "true" if on }
    # It installs gIB on the nodes. Null leaves what the API answers of others.
    gpudirect_strategy = var.pool.managed_rdma ? "RDMA" : null

    guest_accelerator {
      type  = var.pool.gpu.type
      count = var.pool.gpu.count

      gpu_driver_installation_config {
        gpu_driver_version = var.pool.gpu.driver
      }
    }

    reservation_affinity {
      consume_reservation_type = lookup(local._reservations, var.pool.capacity.model, "NO_RESERVATION")
      key                      = var.pool.capacity.reservation == null ? null : "compute.googleapis.com/reservation-name"
      values                   = var.pool.capacity.reservation == null ? null : [var.pool.capacity.reservation]
    }

    dynamic "ephemeral_storage_local_ssd_config" {
      for_each = var.pool.local_ssds == 0 ? [] : [var.pool.local_ssds]

      content {
        local_ssd_count = ephemeral_storage_local_ssd_config.value
      }
    }

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

    taint {
      key    = "nvidia.com/gpu"
      value  = "present"
      effect = "NO_SCHEDULE"
    }
  }

  # Longer than GKE itself tries to get machines, so that its reason is what is heard.
  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  lifecycle {
    # The autoscaler changes the one, GKE adds to the other.
    ignore_changes = [initial_node_count, node_config[0].labels]

    precondition {
      condition     = !local._is_dws || local._numbers.chosen >= local._numbers.floor
      error_message = "Capacity \"${var.pool.capacity.model}\" needs GKE ${local._floor} or newer; the cluster has ${var.cluster.version}. The version prefix \"1.35.\" would pass."
    }
  }
}
