# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  labels = {}
  pool   = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
}

refuses = {
  rdma_by_gke_on_another_machine          = { pool = merge(var.pool, { machine_type = "a3-megagpu-8g", managed_rdma = true }), networks = [] }
  rdma_by_gke_in_a_queue                  = { pool = merge(var.pool, { capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 }, managed_rdma = true }), networks = [] }
  rdma_by_gke_in_networks_of_ours         = { pool = merge(var.pool, { managed_rdma = true }), networks = [{ network = "n", subnetwork = "s" }] }
  a_name_of_41_characters                 = { name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
  a_zone_of_another_region                = { pool = merge(var.pool, { zone = "us-east1-b" }) }
  an_unknown_way_to_get_nodes             = { pool = merge(var.pool, { capacity = { model = "preemptible" } }) }
  a_reservation_with_flex_start           = { pool = merge(var.pool, { capacity = { model = "flex_start", reservation = "mine", max_run_seconds = 604800 }, size = { min = 0, max = 4 } }) }
  a_reservation_with_queued               = { pool = merge(var.pool, { capacity = { model = "queued", reservation = "mine" }, size = { min = 0, max = 4 } }) }
  a_reservation_with_flex_start_queued    = { pool = merge(var.pool, { capacity = { model = "flex_start_queued", reservation = "mine", max_run_seconds = 604800 }, size = { min = 0, max = 4 } }) }
  a_reservation_with_spot                 = { pool = merge(var.pool, { capacity = { model = "spot", reservation = "mine" } }) }
  a_reservation_without_its_name          = { pool = merge(var.pool, { capacity = { model = "reservation" } }) }
  a_count_beside_limits                   = { pool = merge(var.pool, { size = { count = 2, min = 0, max = 4 } }) }
  no_size                                 = { pool = merge(var.pool, { size = {} }) }
  one_limit_alone                         = { pool = merge(var.pool, { size = { max = 4 } }) }
  more_than_1000_nodes                    = { pool = merge(var.pool, { size = { min = 0, max = 1001 } }) }
  half_a_node                             = { pool = merge(var.pool, { size = { count = 1.5 } }) }
  a_min_above_the_max                     = { pool = merge(var.pool, { size = { min = 5, max = 4 } }) }
  a_pool_that_never_has_a_node            = { pool = merge(var.pool, { size = { min = 0, max = 0 } }) }
  a_fixed_size_with_flex_start            = { pool = merge(var.pool, { capacity = { model = "flex_start", max_run_seconds = 604800 } }) }
  a_first_node_with_flex_start            = { pool = merge(var.pool, { capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 1, max = 4 } }) }
  a_fixed_size_with_queued                = { pool = merge(var.pool, { capacity = { model = "queued" } }) }
  a_first_node_with_queued                = { pool = merge(var.pool, { capacity = { model = "queued" }, size = { min = 1, max = 4 } }) }
  a_fixed_size_with_flex_start_queued     = { pool = merge(var.pool, { capacity = { model = "flex_start_queued" } }) }
  a_first_node_with_flex_start_queued     = { pool = merge(var.pool, { capacity = { model = "flex_start_queued" }, size = { min = 1, max = 4 } }) }
  a_run_of_more_than_7_days               = { pool = merge(var.pool, { capacity = { model = "flex_start", max_run_seconds = 604801 }, size = { min = 0, max = 4 } }) }
  flex_start_without_an_end               = { pool = merge(var.pool, { capacity = { model = "flex_start" }, size = { min = 0, max = 4 } }) }
  compact_queued_nodes                    = { pool = merge(var.pool, { capacity = { model = "queued" }, size = { min = 0, max = 4 }, compact = true }) }
  compact_queued_nodes_of_flex_start      = { pool = merge(var.pool, { capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 }, compact = true }) }
  compact_flex_start_for_most_machines    = { pool = merge(var.pool, { machine_type = "a3-megagpu-8g", capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, compact = true }) }
  no_gpus                                 = { pool = merge(var.pool, { gpu = { type = "nvidia-h200-141gb", count = 0, driver = "DEFAULT" } }) }
  an_unknown_driver                       = { pool = merge(var.pool, { gpu = { type = "nvidia-h200-141gb", count = 8, driver = "NEWEST" } }) }
  tpus                                    = { pool = merge(var.pool, { machine_type = "ct5lp-hightpu-4t" }) }
  a_boot_disk_of_less_than_10_gib         = { pool = merge(var.pool, { disk = { size_gb = 9, type = "pd-ssd" } }) }
  the_policy_of_a_reservation_without_one = { pool = merge(var.pool, { policy = "theirs" }) }
  two_placements                          = { pool = merge(var.pool, { capacity = { model = "reservation", reservation = "mine" }, compact = true, policy = "theirs" }) }
  half_a_local_ssd                        = { pool = merge(var.pool, { local_ssds = 0.5 }) }
}

accepts = {
  a_name_of_40_characters             = { name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
  the_greatest_pool                   = { pool = merge(var.pool, { size = { min = 0, max = 1000 } }) }
  flex_start_that_starts_empty        = { pool = merge(var.pool, { capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 } }) }
  queued_that_starts_empty            = { pool = merge(var.pool, { capacity = { model = "queued" }, size = { min = 0, max = 4 } }) }
  flex_start_queued_that_starts_empty = { pool = merge(var.pool, { capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 } }) }
  an_end_of_spot_nodes                = { pool = merge(var.pool, { capacity = { model = "spot", max_run_seconds = 3600 } }) }
  compact_flex_start_for_a3_ultra     = { pool = merge(var.pool, { capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, compact = true }) }
}
