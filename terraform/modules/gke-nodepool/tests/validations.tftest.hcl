# Every rule of the variables refuses what it is there to refuse. One run, one
# planted error; everything else is as below.

mock_provider "google" {}

variables {
  cluster               = { name = "train-gke", location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "REGULAR" }
  cluster_id            = "3f9c2a71"
  hold_upgrades         = true
  marker                = "aiinfra-cluster=3f9c2a71"
  labels                = {}
  name                  = "train-nodepool-1"
  networks              = []
  pool                  = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  project_id            = "my-project"
  region                = "us-central1"
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
}

run "refuses_a_name_of_41_characters" {
  command = plan

  variables {
    name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }

  expect_failures = [var.name]
}

run "accepts_a_name_of_40_characters" {
  command = plan

  variables {
    name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }
}

run "refuses_a_zone_of_another_region" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-east1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_an_unknown_way_to_get_nodes" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "preemptible" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_reservation_with_flex_start" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", reservation = "mine", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_reservation_with_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "queued", reservation = "mine" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_reservation_with_flex_start_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued", reservation = "mine", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_reservation_with_spot" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot", reservation = "mine" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_reservation_without_its_name" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "reservation" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_count_beside_limits" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2, min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_no_size" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = {}, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_one_limit_alone" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_more_than_1000_nodes" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { min = 0, max = 1001 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_half_a_node" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 1.5 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_min_above_the_max" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { min = 5, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_pool_that_never_has_a_node" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { min = 0, max = 0 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "accepts_the_greatest_pool" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { min = 0, max = 1000 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }
}

run "refuses_a_fixed_size_with_flex_start" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_first_node_with_flex_start" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 1, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "accepts_flex_start_that_starts_empty" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }
}

run "refuses_a_fixed_size_with_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "queued" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_first_node_with_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "queued" }, size = { min = 1, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "accepts_queued_that_starts_empty" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "queued" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }
}

run "refuses_a_fixed_size_with_flex_start_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_first_node_with_flex_start_queued" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued" }, size = { min = 1, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "accepts_flex_start_queued_that_starts_empty" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }
}

run "refuses_a_run_of_more_than_7_days" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604801 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_flex_start_without_an_end" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "accepts_an_end_of_spot_nodes" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "spot", max_run_seconds = 3600 }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }
}

run "refuses_compact_queued_nodes" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "queued" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = true }
  }

  expect_failures = [var.pool]
}

run "refuses_compact_queued_nodes_of_flex_start" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start_queued" }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = true }
  }

  expect_failures = [var.pool]
}

run "refuses_compact_flex_start_for_most_machines" {
  command = plan

  variables {
    pool = { machine_type = "a3-megagpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = true }
  }

  expect_failures = [var.pool]
}

run "accepts_compact_flex_start_for_a3_ultra" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "flex_start", max_run_seconds = 604800 }, size = { min = 0, max = 4 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = true }
  }
}

run "refuses_no_gpus" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 0, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_an_unknown_driver" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "NEWEST" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_tpus" {
  command = plan

  variables {
    pool = { machine_type = "ct5lp-hightpu-4t", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_a_boot_disk_of_less_than_10_gib" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 9, type = "pd-ssd" }, local_ssds = 32, compact = false }
  }

  expect_failures = [var.pool]
}

run "refuses_half_a_local_ssd" {
  command = plan

  variables {
    pool = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 0.5, compact = false }
  }

  expect_failures = [var.pool]
}
