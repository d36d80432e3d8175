mock_provider "google" {}

run "without_networks_nothing_is_made" {
  command = plan

  assert {
    condition     = 0 == length(merge(google_compute_firewall.internal, google_compute_network.gpu, google_compute_subnetwork.gpu))
    error_message = "Something is made."
  }
  assert {
    condition     = output.interfaces == []
    error_message = "The interfaces are ${jsonencode(output.interfaces)}."
  }
}

run "networks_of_one_interface_each_have_their_mtu_their_marker_and_no_profile" {
  command = plan

  variables {
    networks = [for _ in range(8) : { mtu = 8244, nic_type = "GVNIC", subnets = 1 }]
  }

  assert {
    condition = alltrue([
      values(google_compute_network.gpu)[*].name == [for number in range(1, 9) : "train-gpu-net-${number}-${substr(sha256("us-central1 8244"), 0, 8)}"],
      alltrue([for network in google_compute_network.gpu : network.mtu == 8244 && !network.auto_create_subnetworks]),
      alltrue([for network in google_compute_network.gpu : network.network_profile == null]),
    ])
    error_message = "It is ${jsonencode([values(google_compute_network.gpu)[*].name, values(google_compute_network.gpu)[*].mtu, google_compute_network.gpu])}."
  }
  assert {
    condition = alltrue([
      for description in concat(
        values(google_compute_firewall.internal)[*].description,
        values(google_compute_network.gpu)[*].description,
        values(google_compute_subnetwork.gpu)[*].description,
      ) : description == "aiinfra-cluster=3f9c2a71"
    ])
    error_message = "Something has another description."
  }
}

run "each_network_without_a_profile_lets_in_its_own_range_and_nothing_else" {
  command = plan

  variables {
    networks = [for _ in range(4) : { mtu = 8244, nic_type = "GVNIC", subnets = 1 }]
  }

  assert {
    condition = alltrue([
      keys(google_compute_firewall.internal) == ["1", "2", "3", "4"],
      alltrue([
        for number, rule in google_compute_firewall.internal :
        startswith(rule.name, "train-gpu-internal-${number}-") && rule.source_ranges == toset([google_compute_subnetwork.gpu[number].ip_cidr_range])
      ]),
      alltrue([
        for rule in google_compute_firewall.internal : toset(rule.allow[*].protocol) == toset(["icmp", "tcp", "udp"])
      ]),
    ])
    error_message = "It is ${jsonencode([keys(google_compute_firewall.internal), google_compute_firewall.internal, [for rule in google_compute_firewall.internal : rule.allow]])}."
  }
}

run "a_network_for_rdma_has_its_zones_profile_several_subnetworks_and_no_rules" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
  }

  assert {
    condition     = google_compute_network.gpu["2"].network_profile == "projects/my-project/global/networkProfiles/us-central1-b-vpc-roce"
    error_message = "The profile is ${google_compute_network.gpu["2"].network_profile}."
  }
  assert {
    condition     = keys(google_compute_firewall.internal) == ["1"]
    error_message = "The rules are ${jsonencode(keys(google_compute_firewall.internal))}."
  }
  assert {
    condition     = output.interfaces[*].nic_type == concat(["GVNIC"], [for _ in range(8) : "MRDMA"])
    error_message = "The interfaces are ${jsonencode(output.interfaces[*].nic_type)}."
  }
  assert {
    condition     = length(google_compute_network.gpu) == 2 && length(google_compute_subnetwork.gpu) == 9
    error_message = "There are ${length(google_compute_network.gpu)} networks with ${length(google_compute_subnetwork.gpu)} subnetworks."
  }
}

run "fifteen_interfaces_keep_their_order_and_their_ranges_do_not_overlap" {
  command = plan

  variables {
    networks = [
      for number in range(1, 16) : {
        mtu      = 8896
        nic_type = number == 2 ? "MRDMA" : "GVNIC"
        subnets  = 1
        profile  = number == 2 ? "vpc-roce" : null
      }
    ]
  }

  # A map would have put the tenth before the second.
  assert {
    condition = alltrue([
      output.interfaces[*].nic_type == [for number in range(1, 16) : number == 2 ? "MRDMA" : "GVNIC"],
      [for interface in output.interfaces : replace(interface.subnetwork, "/-[0-9a-f]{8}$/", "")] == [for number in range(1, 16) : "projects/my-project/regions/us-central1/subnetworks/train-gpu-subnet-${number}"],
    ])
    error_message = "It is ${jsonencode([output.interfaces[*].nic_type, output.interfaces[*].subnetwork])}."
  }
  # Ranges of one size overlap where they are equal, and only there.
  assert {
    condition = alltrue([
      toset(values(google_compute_subnetwork.gpu)[*].ip_cidr_range) == setsubtract(
        toset(cidrsubnets("10.0.0.0/12", [for _ in range(16) : 4]...)), toset(["10.0.0.0/16"])
      ),
      length(distinct(values(google_compute_subnetwork.gpu)[*].ip_cidr_range)) == 15,
    ])
    error_message = "The ranges are ${jsonencode(values(google_compute_subnetwork.gpu)[*].ip_cidr_range)}."
  }
}

run "gke_gets_bare_names_in_the_same_order" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" },
    ]
  }

  assert {
    condition = [for name in output.names : replace("${name.nic_type} ${name.network} ${name.subnetwork}", "/-[0-9a-f]{8}\\b/", "")] == concat(
      ["GVNIC train-gpu-net-1 train-gpu-subnet-1"],
      [for number in range(2, 10) : "MRDMA train-gpu-net-2 train-gpu-subnet-${number}"],
    )
    error_message = "The names are ${jsonencode(output.names)}."
  }
}

run "names_in_one_zone" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 2, profile = "vpc-roce" },
    ]
  }
}

run "another_zone_has_another_name_for_what_has_a_profile_and_for_nothing_else" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 2, profile = "vpc-roce" },
    ]
    zone = "us-central1-a"
  }

  assert {
    condition = alltrue([
      [for index, name in output.names : name.network == run.names_in_one_zone.names[index].network] == [true, false, false],
      [for index, name in output.names : name.subnetwork == run.names_in_one_zone.names[index].subnetwork] == [true, false, false],
    ])
    error_message = "It is ${jsonencode(output.names)}."
  }
}

run "another_region_has_other_names_for_all" {
  command = plan

  variables {
    networks = [
      { mtu = 8896, nic_type = "GVNIC", subnets = 1 },
      { mtu = 8896, nic_type = "MRDMA", subnets = 2, profile = "vpc-roce" },
    ]
    region = "europe-west4"
    zone   = "europe-west4-a"
  }

  assert {
    condition     = length(setintersection(output.names[*].network, run.names_in_one_zone.names[*].network)) == 0
    error_message = "The networks are ${jsonencode(output.names)}."
  }
}
