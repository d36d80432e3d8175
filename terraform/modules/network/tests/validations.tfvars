# Rows of tests/terraform/test_validations.py, which says how they are read.

refuses = {
  an_unknown_network_configuration         = { network_config = "defualt_network" }
  a_range_with_host_bits                   = { ip_range = "10.0.0.1/16" }
  a_range_that_is_an_address               = { ip_range = "10.0.0.0" }
  a_range_of_ipv6                          = { ip_range = "fd00::/64" }
  a_secondary_range_with_host_bits         = { secondary_ranges = { pods = "10.16.0.1/12" } }
  secondary_ranges_in_the_default_network  = { secondary_ranges = { pods = "10.16.0.0/12" }, network_config = "default_network" }
  an_existing_network_without_saying_which = { existing = null, network_config = "existing" }
  rules_for_a_network_that_is_made         = { existing = { network = "projects/my-host/global/networks/my-vpc", subnetwork = "projects/my-host/regions/us-central1/subnetworks/nodes", rules = [{ name = "np-internal", network = "projects/my-host/global/networks/my-vpc", source = "10.0.0.0/8", allow = [{ protocol = "tcp", ports = [] }] }] } }
}

accepts = {
  secondary_ranges_in_a_new_network = { secondary_ranges = { pods = "10.16.0.0/12", services = "10.32.0.0/20" } }
}
