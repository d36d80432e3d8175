# Every rule of the variables refuses what it is there to refuse. One run, one
# planted error; everything else is as below.

mock_provider "google" {}

variables {
  boot_disk             = { size_gb = 2000, type = "pd-ssd" }
  capacity              = { model = "standard", compact = false }
  cluster_id            = "3f9c2a71"
  marker                = "aiinfra-cluster=3f9c2a71"
  group                 = { instance_count = 2, machine_type = "a3-highgpu-8g", external_ip = false }
  image                 = { project = "images", family = "pytorch" }
  interfaces            = [{ nic_type = "GVNIC", subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet" }]
  labels                = {}
  metadata              = {}
  metadata_identity     = {}
  name_prefix           = "train"
  project_id            = "my-project"
  region                = "us-central1"
  resize_requests       = {}
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  users_metadata        = {}
  zone                  = "us-central1-a"
}

run "refuses_an_unknown_model" {
  command = plan

  variables {
    capacity = { model = "preemptible", compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_a_reservation_without_a_name" {
  command = plan

  variables {
    capacity = { model = "reservation", compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_bound_vms_without_their_reservation" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_bound_vms_with_an_end_of_their_own" {
  command = plan

  variables {
    capacity = { model = "reservation_bound", reservation = "mine", max_run_seconds = 86400, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_two_placements" {
  command = plan

  variables {
    capacity = { model = "reservation", reservation = "mine", compact = true, policies = ["theirs"] }
  }

  expect_failures = [var.capacity]
}

run "refuses_spot_vms_of_a_reservation" {
  command = plan

  variables {
    capacity = { model = "spot", reservation = "mine", compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_flex_start_vms_of_a_reservation" {
  command = plan

  variables {
    capacity = { model = "flex_start", reservation = "mine", max_run_seconds = 86400, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_flex_start_for_ever" {
  command = plan

  variables {
    capacity = { model = "flex_start", compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_less_than_10_minutes" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 599, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_more_than_7_days" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 604801, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_vms_that_power_themselves_off_at_once" {
  command = plan

  variables {
    capacity = { model = "standard", idle_seconds = 60, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_vms_of_flex_start_that_power_themselves_off" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, idle_seconds = 7200, compact = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_compact_placement_by_flex_start_of_other_machine_types" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = true }
  }

  expect_failures = [var.capacity]
}

run "refuses_flex_start_of_a4x" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
    group    = { instance_count = 2, machine_type = "a4x-highgpu-4g", external_ip = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_flex_start_of_a4x_max" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
    group    = { instance_count = 2, machine_type = "a4x-maxgpu-4g-metal", external_ip = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_a_part_of_an_a3_high_on_demand" {
  command = plan

  variables {
    group = { instance_count = 2, machine_type = "a3-highgpu-1g", external_ip = false }
  }

  expect_failures = [var.capacity]
}

run "refuses_a_part_of_an_a3_high_from_a_reservation" {
  command = plan

  variables {
    capacity = { model = "reservation", reservation = "mine", compact = false }
    group    = { instance_count = 2, machine_type = "a3-highgpu-4g", external_ip = false }
  }

  expect_failures = [var.capacity]
}

run "accepts_as_much_metadata_as_fits" {
  command = plan

  variables {
    users_metadata = { a = join("", [for index in range(1024) : format("%0128d", index)]), b = join("", [for index in range(448) : format("é%0126d", index)]) }
  }
}

run "refuses_more_metadata_than_fits" {
  command = plan

  variables {
    users_metadata = { a = join("", [for index in range(1024) : format("%0128d", index)]), b = join("", [for index in range(448) : format("é%0126d", index)]), c = "x" }
  }

  expect_failures = [var.users_metadata]
}

run "refuses_the_users_own_startup_script" {
  command = plan

  variables {
    users_metadata    = { startup-script = "reboot" }
    metadata          = { startup-script = "true" }
    metadata_identity = { startup-script = "true" }
  }

  expect_failures = [var.metadata]
}

run "refuses_an_identity_of_other_metadata" {
  command = plan

  variables {
    metadata = { startup-script = "true" }
  }

  expect_failures = [var.metadata_identity]
}

run "refuses_requests_without_flex_start" {
  command = plan

  variables {
    resize_requests = { train-1 = { count = 2, run_seconds = 86400 } }
  }

  expect_failures = [var.resize_requests]
}

run "refuses_a_request_named_in_upper_case" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { Train-1 = { count = 2, run_seconds = 86400 } }
  }

  expect_failures = [var.resize_requests]
}

run "refuses_a_request_for_no_vms" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 0, run_seconds = 86400 } }
  }

  expect_failures = [var.resize_requests]
}

run "refuses_a_request_for_more_than_1000_vms" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 1001, run_seconds = 86400 } }
  }

  expect_failures = [var.resize_requests]
}

run "refuses_a_request_for_less_than_10_minutes" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 2, run_seconds = 599 } }
  }

  expect_failures = [var.resize_requests]
}

run "refuses_a_request_for_more_than_7_days" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 86400, compact = false }
    resize_requests = { train-1 = { count = 2, run_seconds = 604801 } }
  }

  expect_failures = [var.resize_requests]
}

run "accepts_the_longest_and_the_shortest_time" {
  command = plan

  variables {
    capacity        = { model = "flex_start", max_run_seconds = 604800, compact = false }
    resize_requests = { train-1 = { count = 1000, run_seconds = 604800 }, train-2 = { count = 1, run_seconds = 600 } }
  }
}

run "accepts_compact_placement_by_flex_start_of_a3_ultra" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = true }
    group    = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = false }
  }
}

run "accepts_compact_placement_by_flex_start_of_a4" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = true }
    group    = { instance_count = 2, machine_type = "a4-highgpu-8g", external_ip = false }
  }
}

run "accepts_compact_placement_by_flex_start_of_h4d" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = true }
    group    = { instance_count = 2, machine_type = "h4d-highmem-192-lssd", external_ip = false }
  }
}

run "accepts_a_part_of_an_a3_high_as_spot" {
  command = plan

  variables {
    capacity = { model = "spot", compact = false }
    group    = { instance_count = 2, machine_type = "a3-highgpu-1g", external_ip = false }
  }
}

run "accepts_a_part_of_an_a3_high_by_flex_start" {
  command = plan

  variables {
    capacity = { model = "flex_start", max_run_seconds = 86400, compact = false }
    group    = { instance_count = 2, machine_type = "a3-highgpu-2g", external_ip = false }
  }
}
