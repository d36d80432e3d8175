mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = {
      control_plane_endpoints_config = { dns_endpoint_config = { endpoint = "gke-1.us-central1.gke.goog" } }
      master_version                 = "1.35.7-gke.1222000"
    }
  }
}

run "a_cluster_is_private_and_reached_by_its_dns_name_alone" {
  command = plan

  assert {
    condition = alltrue([
      google_container_cluster.gke.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic,
      !google_container_cluster.gke.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled,
      length(google_container_cluster.gke.master_authorized_networks_config) == 0,
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic, google_container_cluster.gke.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled, google_container_cluster.gke.master_authorized_networks_config])}."
  }
  assert {
    condition     = google_container_cluster.gke.private_cluster_config[0].enable_private_nodes
    error_message = "Nodes have addresses outside."
  }
}

run "authorized_networks_reach_it_by_ip_too" {
  command = plan

  variables {
    cluster = {
      location         = "us-central1"
      release_channel  = "REGULAR"
      authorized_cidrs = ["203.0.113.0/24", "198.51.100.7/32"]
      ray_operator     = false
    }
  }

  assert {
    condition = alltrue([
      google_container_cluster.gke.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled,
      toset(google_container_cluster.gke.master_authorized_networks_config[0].cidr_blocks[*].cidr_block) == toset(["203.0.113.0/24", "198.51.100.7/32"]),
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled, google_container_cluster.gke.master_authorized_networks_config])}."
  }
}

run "a_cluster_has_what_gpu_work_needs_and_no_pool_but_the_systems" {
  command = plan

  assert {
    condition     = google_container_cluster.gke.name == "train-gke" && google_container_cluster.gke.location == "us-central1"
    error_message = "The cluster is ${google_container_cluster.gke.name} in ${google_container_cluster.gke.location}."
  }
  assert {
    condition     = google_container_cluster.gke.remove_default_node_pool && !google_container_cluster.gke.deletion_protection
    error_message = "The default pool stays, or the cluster cannot be deleted."
  }
  assert {
    condition = alltrue([
      google_container_cluster.gke.datapath_provider == "ADVANCED_DATAPATH",
      google_container_cluster.gke.enable_shielded_nodes,
      google_container_cluster.gke.workload_identity_config[0].workload_pool == "my-project.svc.id.goog",
      google_container_cluster.gke.addons_config[0].gce_persistent_disk_csi_driver_config[0].enabled,
      google_container_cluster.gke.addons_config[0].gcp_filestore_csi_driver_config[0].enabled,
      google_container_cluster.gke.addons_config[0].gcs_fuse_csi_driver_config[0].enabled,
      contains(google_container_cluster.gke.monitoring_config[0].enable_components, "DCGM"),
      google_container_cluster.gke.monitoring_config[0].managed_prometheus[0].enabled,
      google_container_cluster.gke.resource_labels == tomap({ aiinfra-cluster = "3f9c2a71", team = "ml" }),
      google_container_cluster.gke.description == "aiinfra-cluster=3f9c2a71",
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.datapath_provider, google_container_cluster.gke.workload_identity_config[0].workload_pool, google_container_cluster.gke.addons_config, google_container_cluster.gke.monitoring_config, google_container_cluster.gke.resource_labels])}."
  }
  assert {
    condition     = google_container_cluster.gke.release_channel[0].channel == "REGULAR" && google_container_cluster.gke.min_master_version == null
    error_message = "The version is chosen."
  }
  assert {
    condition     = !google_container_cluster.gke.enable_multi_networking && length(google_container_cluster.gke.maintenance_policy) == 0
    error_message = "There is more than was asked for."
  }
}

run "a_cluster_of_jobs_that_waited_for_their_nodes_keeps_them" {
  command = plan

  variables {
    hold_node_upgrades = true
    multi_networking   = true
  }

  assert {
    condition = alltrue([
      [
        for exclusion in google_container_cluster.gke.maintenance_policy[0].maintenance_exclusion :
        "${exclusion.exclusion_options[0].scope} ${exclusion.exclusion_options[0].end_time_behavior}"
      ] == ["NO_MINOR_OR_NODE_UPGRADES UNTIL_END_OF_SUPPORT"],
      google_container_cluster.gke.enable_multi_networking,
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.maintenance_policy, google_container_cluster.gke.enable_multi_networking])}."
  }
}

run "a_window_takes_the_place_of_the_hold" {
  command = plan

  variables {
    cluster = {
      location         = "us-central1"
      release_channel  = "REGULAR"
      authorized_cidrs = ["203.0.113.0/24"]
      ray_operator     = false
      maintenance      = { recurrence = "FREQ=WEEKLY;BYDAY=SA,SU", start_time = "2026-01-10T02:00:00Z", end_time = "2026-01-10T08:00:00Z" }
    }
  }

  assert {
    condition = alltrue([
      google_container_cluster.gke.maintenance_policy[0].recurring_window[0].recurrence == "FREQ=WEEKLY;BYDAY=SA,SU",
      length(google_container_cluster.gke.maintenance_policy[0].daily_maintenance_window) == 0,
      length(google_container_cluster.gke.maintenance_policy[0].maintenance_exclusion) == 0,
      google_container_cluster.gke.master_authorized_networks_config[0].gcp_public_cidrs_access_enabled == false,
      google_container_cluster.gke.cluster_autoscaling[0].autoscaling_profile == "OPTIMIZE_UTILIZATION",
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.maintenance_policy, google_container_cluster.gke.master_authorized_networks_config, google_container_cluster.gke.cluster_autoscaling])}."
  }
}

run "the_ray_operator_is_an_add_on" {
  command = plan

  variables {
    cluster = {
      location         = "us-central1"
      version          = "1.29.8-gke.1054000"
      release_channel  = "STABLE"
      authorized_cidrs = []
      ray_operator     = true
    }
  }

  assert {
    condition = alltrue([
      google_container_cluster.gke.addons_config[0].ray_operator_config[0].enabled,
      google_container_cluster.gke.min_master_version == "1.29.8-gke.1054000",
    ])
    error_message = "It is ${jsonencode([google_container_cluster.gke.addons_config, google_container_cluster.gke.min_master_version])}."
  }
}

run "the_ray_operator_refuses_the_version_before" {
  command = plan

  variables {
    cluster = {
      location         = "us-central1"
      version          = "1.29.8-gke.1053999"
      release_channel  = "STABLE"
      authorized_cidrs = []
      ray_operator     = true
    }
  }

  expect_failures = [google_container_cluster.gke]
}

run "the_system_pool_is_neither_flex_start_nor_queued_and_may_be_spot" {
  command = plan

  assert {
    condition = alltrue([
      google_container_node_pool.system.name == "train-system",
      google_container_node_pool.system.node_locations == toset(["us-central1-f"]),
      google_container_node_pool.system.initial_node_count == 1 && alltrue([
        google_container_node_pool.system.autoscaling[0].total_min_node_count == 1,
        google_container_node_pool.system.autoscaling[0].total_max_node_count == 3,
      ]),
      google_container_node_pool.system.node_config[0].spot,
      length(google_container_node_pool.system.queued_provisioning) == 0,
      google_container_node_pool.system.management[0].auto_repair,
      google_container_node_pool.system.management[0].auto_upgrade,
      length(google_container_node_pool.system.node_config[0].taint) == 0,
    ])
    error_message = "It is ${jsonencode([google_container_node_pool.system.name, google_container_node_pool.system.autoscaling, google_container_node_pool.system.node_config, google_container_node_pool.system.management])}."
  }
}

run "pods_act_as_the_workload_account" {
  command = plan

  assert {
    condition = alltrue([
      google_service_account_iam_member.pods.member == "serviceAccount:my-project.svc.id.goog[default/train-workload]",
      google_service_account_iam_member.pods.service_account_id == "projects/my-project/serviceAccounts/train-workload@my-project.iam.gserviceaccount.com",
    ])
    error_message = "It is ${jsonencode([google_service_account_iam_member.pods.member, google_service_account_iam_member.pods.service_account_id])}."
  }
}

run "what_was_made_is_told" {
  assert {
    condition = output.control_plane == {
      location        = "us-central1"
      name            = "train-gke"
      release_channel = "REGULAR"
      version         = "1.35.7-gke.1222000"
    }
    error_message = "The control plane is ${jsonencode(output.control_plane)}."
  }
  assert {
    condition = output.cluster == {
      dns_endpoint  = "gke-1.us-central1.gke.goog"
      location      = "us-central1"
      name          = "train-gke"
      version       = "1.35.7-gke.1222000"
      workload_pool = "my-project.svc.id.goog"
    }
    error_message = "The cluster is ${jsonencode(output.cluster)}."
  }
}
