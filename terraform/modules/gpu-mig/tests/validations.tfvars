# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  as_much_as_fits   = { a = join("", [for index in range(1024) : format("%0128d", index)]), b = join("", [for index in range(448) : format("é%0126d", index)]) }
  flex_start        = { model = "flex_start", max_run_seconds = 86400, compact = false }
  group             = { instance_count = 2, machine_type = "a3-highgpu-8g", external_ip = false }
  metadata          = {}
  metadata_identity = {}
}

refuses = {
  an_unknown_model                                       = { capacity = { model = "preemptible", compact = false } }
  a_reservation_without_a_name                           = { capacity = { model = "reservation", compact = false } }
  bound_vms_without_their_reservation                    = { capacity = { model = "reservation_bound", compact = false } }
  bound_vms_with_an_end_of_their_own                     = { capacity = { model = "reservation_bound", reservation = "mine", max_run_seconds = 86400, compact = false } }
  two_placements                                         = { capacity = { model = "reservation", reservation = "mine", compact = true, policies = ["theirs"] } }
  a_policy_beside_those_of_a_reservation                 = { capacity = { model = "reservation", reservation = "mine", compact = false, keeps_policy = true, policies = ["theirs"] } }
  spot_vms_of_a_reservation                              = { capacity = { model = "spot", reservation = "mine", compact = false } }
  flex_start_vms_of_a_reservation                        = { capacity = merge(var.flex_start, { reservation = "mine" }) }
  flex_start_for_ever                                    = { capacity = { model = "flex_start", compact = false } }
  less_than_10_minutes                                   = { capacity = merge(var.flex_start, { max_run_seconds = 599 }) }
  more_than_7_days                                       = { capacity = merge(var.flex_start, { max_run_seconds = 604801 }) }
  vms_that_power_themselves_off_at_once                  = { capacity = { model = "standard", idle_seconds = 60, compact = false } }
  vms_of_flex_start_that_power_themselves_off            = { capacity = merge(var.flex_start, { idle_seconds = 7200 }) }
  compact_placement_by_flex_start_of_other_machine_types = { capacity = merge(var.flex_start, { compact = true }) }
  flex_start_of_a4x                                      = { capacity = var.flex_start, group = merge(var.group, { machine_type = "a4x-highgpu-4g" }) }
  flex_start_of_a4x_max                                  = { capacity = var.flex_start, group = merge(var.group, { machine_type = "a4x-maxgpu-4g-metal" }) }
  a_part_of_an_a3_high_on_demand                         = { capacity = var.capacity, group = merge(var.group, { machine_type = "a3-highgpu-1g" }) }
  a_part_of_an_a3_high_from_a_reservation                = { capacity = { model = "reservation", reservation = "mine", compact = false }, group = merge(var.group, { machine_type = "a3-highgpu-4g" }) }
  more_metadata_than_fits                                = { users_metadata = merge(var.as_much_as_fits, { c = "x" }) }
  the_users_own_startup_script                           = { metadata = { startup-script = "true" }, users_metadata = { startup-script = "reboot" }, metadata_identity = { startup-script = "true" } }
  an_identity_of_other_metadata                          = { metadata_identity = var.metadata_identity, metadata = { startup-script = "true" } }
  requests_without_flex_start                            = { resize_requests = { train-1 = { count = 2, run_seconds = 86400 } } }
  a_request_named_in_upper_case                          = { resize_requests = { Train-1 = { count = 2, run_seconds = 86400 } }, capacity = var.flex_start }
  a_request_for_no_vms                                   = { resize_requests = { train-1 = { count = 0, run_seconds = 86400 } }, capacity = var.flex_start }
  a_request_for_more_than_1000_vms                       = { resize_requests = { train-1 = { count = 1001, run_seconds = 86400 } }, capacity = var.flex_start }
  a_request_for_less_than_10_minutes                     = { resize_requests = { train-1 = { count = 2, run_seconds = 599 } }, capacity = var.flex_start }
  a_request_for_more_than_7_days                         = { resize_requests = { train-1 = { count = 2, run_seconds = 604801 } }, capacity = var.flex_start }
}

accepts = {
  as_much_metadata_as_fits                    = { users_metadata = var.as_much_as_fits }
  the_longest_and_the_shortest_time           = { capacity = merge(var.flex_start, { max_run_seconds = 604800 }), resize_requests = { train-1 = { count = 1000, run_seconds = 604800 }, train-2 = { count = 1, run_seconds = 600 } } }
  compact_placement_by_flex_start_of_a3_ultra = { capacity = merge(var.flex_start, { compact = true }), group = merge(var.group, { machine_type = "a3-ultragpu-8g" }) }
  compact_placement_by_flex_start_of_a4       = { capacity = merge(var.flex_start, { compact = true }), group = merge(var.group, { machine_type = "a4-highgpu-8g" }) }
  compact_placement_by_flex_start_of_h4d      = { capacity = merge(var.flex_start, { compact = true }), group = merge(var.group, { machine_type = "h4d-highmem-192-lssd" }) }
  a_part_of_an_a3_high_as_spot                = { capacity = { model = "spot", compact = false }, group = merge(var.group, { machine_type = "a3-highgpu-1g" }) }
  a_part_of_an_a3_high_by_flex_start          = { capacity = var.flex_start, group = merge(var.group, { machine_type = "a3-highgpu-2g" }) }
}
