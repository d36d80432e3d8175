mock_provider "google" {
  mock_resource "google_filestore_instance" {
    defaults = {
      networks = { ip_addresses = ["10.1.2.2"] }
    }
  }
}

run "a_network_of_another_project_is_joined_by_private_services_access" {
  command = plan

  variables {
    network = "projects/my-host/global/networks/my-vpc"
  }

  assert {
    condition     = alltrue([for share in google_filestore_instance.shares : share.networks[0].connect_mode == "PRIVATE_SERVICE_ACCESS"])
    error_message = "A share would be peered with a network of others."
  }
}

run "each_share_is_of_its_tier_size_and_place_with_labels_and_marker" {
  assert {
    condition = alltrue([
      [for share in google_filestore_instance.shares : "${share.tier} ${share.location} ${share.file_shares[0].capacity_gb}"] == [
        "ENTERPRISE us-central1 1024", "BASIC_SSD us-central1-a 2560",
      ],
      alltrue([for share in google_filestore_instance.shares : share.labels == tomap({ team = "ml", aiinfra-cluster = "3f9c2a71" })]),
      alltrue([for share in google_filestore_instance.shares : share.description == "aiinfra-cluster=3f9c2a71"]),
      alltrue([for share in google_filestore_instance.shares : share.networks[0].network == var.network && share.networks[0].connect_mode == "DIRECT_PEERING"]),
    ])
    error_message = "It is ${jsonencode([google_filestore_instance.shares, [for share in google_filestore_instance.shares : share.labels], [for share in google_filestore_instance.shares : share.description]])}."
  }
}

run "mounts_are_told_by_the_storage_contract_in_order" {
  assert {
    condition = alltrue([
      [for mount in output.mounts : "${mount.type} ${mount.remote_path} ${mount.local_mount}"] == ["nfs /share /mnt/b", "nfs /share /mnt/a"],
      output.mounts[*].server == output.filestores[*].ip,
    ])
    error_message = "It is ${jsonencode(output.mounts)}."
  }
}

run "named_mounts_are_the_same_but_for_the_server_and_known_at_plan" {
  command = plan

  assert {
    condition = alltrue([
      output.named_mounts[*].server == [google_filestore_instance.shares["/mnt/b"].name, google_filestore_instance.shares["/mnt/a"].name],
      jsonencode([for mount in output.named_mounts : { for key, value in mount : key => value if key != "server" }]) == jsonencode([for mount in run.mounts_are_told_by_the_storage_contract_in_order.mounts : { for key, value in mount : key => value if key != "server" }]),
    ])
    error_message = "It is ${jsonencode(output.named_mounts)}."
  }
}

run "another_order_and_other_sizes_keep_the_names" {
  command = plan

  variables {
    filestores = [
      { path = "/mnt/a", tier = "ENTERPRISE", size_gb = 2048, location = "us-central1" },
      { path = "/mnt/b", tier = "BASIC_SSD", size_gb = 5120, location = "us-central1-a" },
    ]
  }

  assert {
    condition     = output.named_mounts[*].server == reverse(run.named_mounts_are_the_same_but_for_the_server_and_known_at_plan.named_mounts[*].server)
    error_message = "The names are ${jsonencode(output.named_mounts[*].server)}."
  }
}

run "another_network_has_other_names_for_all" {
  command   = plan
  state_key = "new"

  variables {
    network = "projects/my-project/global/networks/default"
  }

  assert {
    condition     = length(setintersection(output.named_mounts[*].server, run.named_mounts_are_the_same_but_for_the_server_and_known_at_plan.named_mounts[*].server)) == 0
    error_message = "The names are ${jsonencode(output.named_mounts[*].server)}."
  }
}

run "another_path_tier_or_location_has_another_name" {
  command   = plan
  state_key = "new"

  variables {
    filestores = [
      { path = "/mnt/b", tier = "BASIC_HDD", size_gb = 2560, location = "us-central1-a" },
      { path = "/mnt/a", tier = "ENTERPRISE", size_gb = 1024, location = "us-east1" },
      { path = "/mnt/c", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" },
    ]
  }

  assert {
    condition     = length(setintersection(output.named_mounts[*].server, run.named_mounts_are_the_same_but_for_the_server_and_known_at_plan.named_mounts[*].server)) == 0
    error_message = "The names are ${jsonencode(output.named_mounts[*].server)}."
  }
}
