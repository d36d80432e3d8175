mock_provider "google" {}

run "the_default_network_is_looked_up_and_nothing_is_made" {
  command = plan

  variables {
    network_config = "default_network"
  }

  assert {
    condition = 0 == length(concat(
      google_compute_firewall.iap_ssh,
      google_compute_firewall.internal,
      google_compute_network.new,
      google_compute_router.new,
      google_compute_router_nat.new,
      google_compute_subnetwork.new,
    ))
    error_message = "Something is made."
  }
  assert {
    condition     = data.google_compute_subnetwork.default[0].region == "us-central1"
    error_message = "The subnetwork is looked up in ${data.google_compute_subnetwork.default[0].region}."
  }
  assert {
    condition     = output.network == "projects/my-project/global/networks/default"
    error_message = "The network is ${output.network}."
  }
  assert {
    condition     = output.subnetwork == "projects/my-project/regions/us-central1/subnetworks/default"
    error_message = "The subnetwork is ${output.subnetwork}."
  }
}

run "a_network_that_exists_is_handed_on_and_not_even_looked_up" {
  command = plan

  variables {
    existing = {
      network    = "projects/my-host/global/networks/my-vpc"
      subnetwork = "projects/my-host/regions/us-central1/subnetworks/gpu-vms"
    }
    network_config = "existing"
  }

  assert {
    condition = 0 == length(concat(
      data.google_compute_network.default,
      data.google_compute_subnetwork.default,
      google_compute_firewall.iap_ssh,
      google_compute_firewall.internal,
      google_compute_network.new,
      google_compute_router.new,
      google_compute_router_nat.new,
      google_compute_subnetwork.new,
    ))
    error_message = "Something is made or looked up."
  }
  assert {
    condition     = [output.network, output.subnetwork] == [var.existing.network, var.existing.subnetwork]
    error_message = "The network is ${output.network}, the subnetwork ${output.subnetwork}."
  }
}

run "a_new_network_has_its_names_and_its_marker_and_is_known_before_it_is_made" {
  command = plan

  assert {
    condition = alltrue([
      for description in concat(
        google_compute_firewall.iap_ssh[*].description,
        google_compute_firewall.internal[*].description,
        google_compute_network.new[*].description,
        google_compute_router.new[*].description,
        google_compute_subnetwork.new[*].description,
      ) : description == "aiinfra-cluster=3f9c2a71"
    ])
    error_message = "Something has another description."
  }
  assert {
    condition     = output.network == "projects/my-project/global/networks/train-net-${substr(sha256(var.region), 0, 8)}"
    error_message = "The network is ${output.network}."
  }
  assert {
    condition     = can(regex("^projects/my-project/regions/us-central1/subnetworks/train-primary-subnet-[0-9a-f]{8}$", output.subnetwork))
    error_message = "The subnetwork is ${output.subnetwork}."
  }
  assert {
    condition     = 0 == length(concat(data.google_compute_network.default, data.google_compute_subnetwork.default))
    error_message = "The default network is looked up."
  }
}

run "a_new_network_carries_jumbo_frames_and_reaches_the_internet_by_nat" {
  command = plan

  assert {
    condition     = google_compute_network.new[0].mtu == 8896 && !google_compute_network.new[0].auto_create_subnetworks
    error_message = "The MTU is ${google_compute_network.new[0].mtu}."
  }
  assert {
    condition     = google_compute_subnetwork.new[0].ip_cidr_range == "10.0.0.0/16"
    error_message = "The range is ${google_compute_subnetwork.new[0].ip_cidr_range}."
  }
  assert {
    condition     = google_compute_subnetwork.new[0].private_ip_google_access
    error_message = "Google's APIs are reached through the NAT."
  }
  assert {
    condition = alltrue([
      google_compute_router_nat.new[0].router == google_compute_router.new[0].name,
      google_compute_router_nat.new[0].source_subnetwork_ip_ranges_to_nat == "ALL_SUBNETWORKS_ALL_IP_RANGES",
    ])
    error_message = "It is ${jsonencode([google_compute_router_nat.new[0].router, google_compute_router_nat.new[0].source_subnetwork_ip_ranges_to_nat])}."
  }
}

run "a_new_network_lets_in_its_own_range_and_ssh_from_identity_aware_proxy_only" {
  command = plan

  variables {
    ip_range = "172.16.0.0/20"
  }

  assert {
    condition     = google_compute_firewall.internal[0].source_ranges == toset(["172.16.0.0/20"])
    error_message = "The sources are ${jsonencode(google_compute_firewall.internal[0].source_ranges)}."
  }
  assert {
    condition     = google_compute_subnetwork.new[0].ip_cidr_range == "172.16.0.0/20"
    error_message = "The range is ${google_compute_subnetwork.new[0].ip_cidr_range}."
  }
  assert {
    condition     = toset(google_compute_firewall.internal[0].allow[*].protocol) == toset(["icmp", "tcp", "udp"])
    error_message = "Allowed is ${jsonencode(google_compute_firewall.internal[0].allow)}."
  }
  assert {
    condition = alltrue([
      google_compute_firewall.iap_ssh[0].source_ranges == toset(["35.235.240.0/20"]),
      [for rule in google_compute_firewall.iap_ssh[0].allow : "${rule.protocol}/${join(",", rule.ports)}"] == ["tcp/22"],
    ])
    error_message = "It is ${jsonencode([google_compute_firewall.iap_ssh[0].source_ranges, google_compute_firewall.iap_ssh[0].allow])}."
  }
}

run "a_new_network_has_the_ranges_that_gke_wants_for_pods_and_services_if_asked" {
  command = plan

  variables {
    secondary_ranges = { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
  }

  assert {
    condition = {
      for range in google_compute_subnetwork.new[0].secondary_ip_range : range.range_name => range.ip_cidr_range
    } == { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
    error_message = "The ranges are ${jsonencode(google_compute_subnetwork.new[0].secondary_ip_range)}."
  }
}

run "a_network_of_others_gets_the_rules_that_are_asked_for_in_its_own_project" {
  command = plan

  variables {
    network_config = "existing"
    existing = {
      network    = "projects/my-host/global/networks/my-vpc"
      subnetwork = "projects/my-host/regions/us-central1/subnetworks/gpu-vms"
      rules = [
        { name = "np-internal", network = "projects/my-host/global/networks/my-vpc", source = "10.200.0.0/22", allow = [{ protocol = "icmp", ports = [] }, { protocol = "tcp", ports = [] }] },
        { name = "np-iap-ssh", network = "projects/my-host/global/networks/my-vpc", source = "35.235.240.0/20", allow = [{ protocol = "tcp", ports = ["22"] }] },
      ]
    }
  }

  assert {
    condition = alltrue([
      { for key, rule in google_compute_firewall.existing : key => rule.project } == { np-internal = "my-host", np-iap-ssh = "my-host" },
      google_compute_firewall.existing["np-internal"].name == "np-internal-2a782ed0",
      google_compute_firewall.existing["np-internal"].source_ranges == toset(["10.200.0.0/22"]),
      [for rule in google_compute_firewall.existing["np-iap-ssh"].allow : "${rule.protocol}/${join(",", rule.ports)}"] == ["tcp/22"],
    ])
    error_message = "It is ${jsonencode(google_compute_firewall.existing)}."
  }
  assert {
    condition     = length(google_compute_network.new) + length(google_compute_firewall.internal) == 0
    error_message = "A network or rules of one are made beside what exists."
  }
}
