# What Google's rules make of the ways to get nodes. Rules' ids are in the messages of
# the tool's own tests.

mock_provider "google" {}

variables {
  a2       = { machine_type = "a2-highgpu-2g", zone = "us-central1-b", gpu = { type = "nvidia-tesla-a100", count = 2, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "pd-ssd" }, local_ssds = 0, compact = false }
  reserved = { model = "reservation", reservation = "mine" }
  t4       = { machine_type = "n1-standard-2", zone = "us-central1-c", gpu = { type = "nvidia-tesla-t4", count = 1, driver = "LATEST" }, capacity = { model = "queued" }, size = { min = 0, max = 1 }, disk = { size_gb = 20, type = "pd-balanced" }, local_ssds = 0, compact = false }
}

run "queued_nodes_of_flex_start_come_and_go_and_nobody_touches_them" {
  command = plan

  variables {
    networks = [
      { network = "train-gpu-net-1", subnetwork = "train-gpu-subnet-1" },
      { network = "train-gpu-net-2", subnetwork = "train-gpu-subnet-2" },
    ]
  }

  assert {
    condition = alltrue([
      google_container_node_pool.gpu.initial_node_count == 0,
      google_container_node_pool.gpu.autoscaling[0].total_min_node_count == 0 && alltrue([
        google_container_node_pool.gpu.autoscaling[0].total_max_node_count == 4,
        google_container_node_pool.gpu.autoscaling[0].location_policy == "ANY",
      ]),
      !google_container_node_pool.gpu.management[0].auto_repair,
      google_container_node_pool.gpu.management[0].auto_upgrade,
      google_container_node_pool.gpu.queued_provisioning[0].enabled,
      google_container_node_pool.gpu.node_config[0].flex_start,
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.initial_node_count, google_container_node_pool.gpu.autoscaling, google_container_node_pool.gpu.management, google_container_node_pool.gpu.queued_provisioning[0].enabled, google_container_node_pool.gpu.node_config[0].flex_start])}."
  }
  assert {
    condition = alltrue([
      google_container_node_pool.gpu.node_config[0].max_run_duration == null,
      !google_container_node_pool.gpu.node_config[0].spot,
      google_container_node_pool.gpu.node_config[0].reservation_affinity[0].consume_reservation_type == "NO_RESERVATION",
      google_container_node_pool.gpu.node_config[0].labels == tomap({ "cloud.google.com/gke-queued" = "true" }),
      google_container_node_pool.gpu.network_config[0].additional_node_network_configs[*].subnetwork == tolist(["train-gpu-subnet-1", "train-gpu-subnet-2"]),
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.node_config[0].max_run_duration, google_container_node_pool.gpu.node_config[0].reservation_affinity, google_container_node_pool.gpu.node_config[0].labels, google_container_node_pool.gpu.network_config])}."
  }
  assert {
    condition     = length(google_container_node_pool.gpu.placement_policy) == 0 && length(google_compute_resource_policy.compact) == 0
    error_message = "Queued nodes are placed."
  }
}

run "a_node_has_its_gpus_its_driver_its_local_ssds_and_its_taint" {
  command = plan

  assert {
    condition = alltrue([
      [
        for gpu in google_container_node_pool.gpu.node_config[0].guest_accelerator :
        "${gpu.type} ${gpu.count} ${gpu.gpu_driver_installation_config[0].gpu_driver_version}"
      ] == ["nvidia-h200-141gb 8 LATEST"],
      google_container_node_pool.gpu.node_config[0].ephemeral_storage_local_ssd_config[0].local_ssd_count == 32,
      [for taint in google_container_node_pool.gpu.node_config[0].taint : "${taint.key}=${taint.value}:${taint.effect}"] == ["nvidia.com/gpu=present:NO_SCHEDULE"],
      google_container_node_pool.gpu.node_config[0].resource_labels == tomap({ aiinfra-cluster = "3f9c2a71", team = "ml" }),
      google_container_node_pool.gpu.node_config[0].shielded_instance_config[0].enable_secure_boot,
      google_container_node_pool.gpu.node_config[0].shielded_instance_config[0].enable_integrity_monitoring,
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.node_config[0].guest_accelerator, google_container_node_pool.gpu.node_config[0].ephemeral_storage_local_ssd_config, google_container_node_pool.gpu.node_config[0].taint, google_container_node_pool.gpu.node_config[0].resource_labels])}."
  }
  assert {
    condition     = google_container_node_pool.gpu.node_locations == toset(["us-central1-b"]) && google_container_node_pool.gpu.cluster == "train-gke"
    error_message = "The pool is in ${jsonencode(google_container_node_pool.gpu.node_locations)}."
  }
}

run "a_pool_has_the_version_that_is_said" {
  command = plan

  variables {
    pool = merge(var.a2, { capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 }, version = "1.35.7-gke.1222000" })
  }

  assert {
    condition     = google_container_node_pool.gpu.version == "1.35.7-gke.1222000"
    error_message = "It has the version ${jsonencode(google_container_node_pool.gpu.version)}."
  }
}

run "without_a_release_channel_queued_nodes_are_not_upgraded" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "UNSPECIFIED" }
  }

  assert {
    condition     = !google_container_node_pool.gpu.management[0].auto_upgrade
    error_message = "It is managed by ${jsonencode(google_container_node_pool.gpu.management)}."
  }
}

run "nodes_that_stay_are_upgraded_there_where_their_owner_wants_it" {
  command = plan

  variables {
    cluster       = { name = "train-gke", location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "UNSPECIFIED" }
    hold_upgrades = false
    pool          = var.a2
  }

  assert {
    condition     = google_container_node_pool.gpu.management[0].auto_upgrade
    error_message = "It is managed by ${jsonencode(google_container_node_pool.gpu.management)}."
  }
}

run "nodes_that_stay_are_not_upgraded_there_unasked" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "UNSPECIFIED" }
    pool    = var.a2
  }

  assert {
    condition     = !google_container_node_pool.gpu.management[0].auto_upgrade
    error_message = "It is managed by ${jsonencode(google_container_node_pool.gpu.management)}."
  }
}

run "queued_nodes_without_flex_start_leave_their_end_to_the_request" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.31.1-gke.1000000", release_channel = "REGULAR" }
    pool    = var.t4
  }

  assert {
    condition     = google_container_node_pool.gpu.queued_provisioning[0].enabled && google_container_node_pool.gpu.node_config[0].flex_start == null
    error_message = "It is of flex start."
  }
  assert {
    condition     = google_container_node_pool.gpu.node_config[0].max_run_duration == null && length(google_container_node_pool.gpu.node_config[0].ephemeral_storage_local_ssd_config) == 0
    error_message = "Nodes have an end of the pool, or local SSDs."
  }
  assert {
    condition     = !google_container_node_pool.gpu.management[0].auto_repair
    error_message = "Nodes are repaired."
  }
}

run "queued_nodes_keep_the_end_that_google_says_of_their_pool" {
  command = plan

  variables {
    pool = merge(var.pool, { capacity = { model = "flex_start_queued", max_run_seconds = 43200 } })
  }

  assert {
    condition     = google_container_node_pool.gpu.node_config[0].max_run_duration == "43200s"
    error_message = "Nodes run for ${jsonencode(google_container_node_pool.gpu.node_config[0].max_run_duration)}."
  }
}

run "flex_start_alone_may_be_compact_by_a_workload_policy" {
  command = plan

  variables {
    pool = merge(var.pool, { machine_type = "a4-highgpu-8g", capacity = { model = "flex_start", max_run_seconds = 3600 }, compact = true })
  }

  assert {
    condition = alltrue([
      google_compute_resource_policy.compact[0].workload_policy[0].type == "HIGH_THROUGHPUT",
      google_compute_resource_policy.compact[0].description == "aiinfra-cluster=3f9c2a71",
    ])
    error_message = "It is ${jsonencode(google_compute_resource_policy.compact)}."
  }
  assert {
    condition = alltrue([
      google_container_node_pool.gpu.placement_policy[0].policy_name == "train-nodepool-1-compact",
      length(google_container_node_pool.gpu.queued_provisioning) == 0,
      length(google_container_node_pool.gpu.node_config[0].labels) == 0,
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.placement_policy, google_container_node_pool.gpu.queued_provisioning, google_container_node_pool.gpu.node_config[0].labels])}."
  }
}

run "a_pool_of_a_fixed_size_is_repaired_and_may_be_compact_by_itself" {
  command = plan

  variables {
    pool = merge(var.a2, { compact = true })
  }

  assert {
    condition = alltrue([
      google_container_node_pool.gpu.node_count == 2,
      length(google_container_node_pool.gpu.autoscaling) == 0,
      google_container_node_pool.gpu.management[0].auto_repair,
      google_container_node_pool.gpu.management[0].auto_upgrade,
      google_container_node_pool.gpu.upgrade_settings[0].max_surge == 0,
      google_container_node_pool.gpu.upgrade_settings[0].max_unavailable == 1,
      google_container_node_pool.gpu.placement_policy[0].type == "COMPACT",
      length(google_compute_resource_policy.compact) == 0,
      google_container_node_pool.gpu.node_config[0].reservation_affinity[0].consume_reservation_type == "ANY_RESERVATION",
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.node_count, google_container_node_pool.gpu.management, google_container_node_pool.gpu.upgrade_settings, google_container_node_pool.gpu.placement_policy, google_container_node_pool.gpu.node_config[0].reservation_affinity])}."
  }
}

run "spot_nodes_come_from_no_reservation" {
  command = plan

  variables {
    pool = merge(var.a2, { capacity = { model = "spot" }, size = { min = 1, max = 2 } })
  }

  assert {
    condition     = google_container_node_pool.gpu.node_config[0].spot && google_container_node_pool.gpu.node_config[0].reservation_affinity[0].consume_reservation_type == "NO_RESERVATION"
    error_message = "Nodes come from ${jsonencode(google_container_node_pool.gpu.node_config[0].reservation_affinity)}."
  }
}

run "nodes_share_the_placement_of_their_reservation" {
  command = plan

  variables {
    pool = merge(var.a2, { capacity = var.reserved, policy = "theirs" })
  }

  assert {
    condition     = google_container_node_pool.gpu.placement_policy[0].policy_name == "theirs" && google_container_node_pool.gpu.placement_policy[0].type == "COMPACT"
    error_message = "The placement is ${jsonencode(google_container_node_pool.gpu.placement_policy)}."
  }
}

run "reserved_nodes_come_from_their_reservation" {
  command = plan

  variables {
    pool = merge(var.a2, { capacity = var.reserved })
  }

  assert {
    condition = [
      for affinity in google_container_node_pool.gpu.node_config[0].reservation_affinity :
      "${affinity.consume_reservation_type} ${affinity.key} ${join(",", affinity.values)}"
    ] == ["SPECIFIC_RESERVATION compute.googleapis.com/reservation-name mine"]
    error_message = "Nodes come from ${jsonencode(google_container_node_pool.gpu.node_config[0].reservation_affinity)}."
  }
}

run "flex_start_accepts_the_first_version_that_has_it" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.32.2-gke.1652000", release_channel = "REGULAR" }
  }
}

run "flex_start_refuses_the_version_before" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.32.2-gke.1651999", release_channel = "REGULAR" }
  }

  expect_failures = [google_container_node_pool.gpu]
}

run "queueing_refuses_a_version_that_knows_no_limit_of_the_run" {
  command = plan

  variables {
    cluster = { name = "train-gke", location = "us-central1", version = "1.28.4-gke.9999999", release_channel = "REGULAR" }
    pool    = var.t4
  }

  expect_failures = [google_container_node_pool.gpu]
}

run "interfaces_that_gke_manages_come_with_no_network_of_ours" {
  command = plan

  variables {
    networks = []
    pool     = merge(var.pool, { capacity = { model = "standard" }, size = { count = 2 }, managed_rdma = true })
  }

  assert {
    condition = alltrue([
      google_container_node_pool.gpu.network_config[0].accelerator_network_profile == "auto",
      length(google_container_node_pool.gpu.network_config[0].additional_node_network_configs) == 0,
      google_container_node_pool.gpu.node_config[0].gpudirect_strategy == "RDMA",
      google_container_node_pool.gpu.node_config[0].labels == tomap({ "cloud.google.com/gke-networking-dra-driver" = "true" }),
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.gpu.network_config, google_container_node_pool.gpu.node_config[0].gpudirect_strategy, google_container_node_pool.gpu.node_config[0].labels])}."
  }
}
