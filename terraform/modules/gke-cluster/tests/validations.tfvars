# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  labels      = {}
  system_pool = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
}

refuses = {
  a_cluster_in_a_zone                          = { cluster = merge(var.cluster, { location = "us-central1-a" }), system_pool = merge(var.system_pool, { zone = "us-central1-a-a" }) }
  a_version_that_is_a_prefix                   = { cluster = merge(var.cluster, { version = "1.35." }) }
  an_unknown_release_channel                   = { cluster = merge(var.cluster, { release_channel = "FAST" }) }
  an_authorized_address_without_its_length     = { cluster = merge(var.cluster, { authorized_cidrs = ["203.0.113.7"] }) }
  an_authorized_network_with_host_bits         = { cluster = merge(var.cluster, { authorized_cidrs = ["203.0.113.7/24"] }) }
  to_hold_upgrades_without_a_release_channel   = { hold_node_upgrades = true, cluster = merge(var.cluster, { release_channel = "UNSPECIFIED" }) }
  a_system_pool_without_a_node                 = { system_pool = merge(var.system_pool, { min = 0 }) }
  a_system_pool_of_fewer_than_its_fewest_nodes = { system_pool = merge(var.system_pool, { min = 4 }) }
  a_boot_disk_of_less_than_10_gib              = { system_pool = merge(var.system_pool, { disk_size_gb = 9 }) }
  a_system_pool_in_another_region              = { system_pool = merge(var.system_pool, { zone = "us-east1-b" }) }
}

accepts = {
  a_full_version                        = { cluster = merge(var.cluster, { version = "1.35.7-gke.1222000" }) }
  one_authorized_address                = { cluster = merge(var.cluster, { authorized_cidrs = ["203.0.113.7/32"] }) }
  to_hold_upgrades_on_a_release_channel = { hold_node_upgrades = true }
}
