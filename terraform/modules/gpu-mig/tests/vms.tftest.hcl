mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      name         = "pytorch-v1"
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

run "the_group_is_named_marked_not_waited_for_and_leaves_running_vms_alone" {
  command = plan

  assert {
    condition = alltrue([
      google_compute_instance_group_manager.gpu.name == "train-mig",
      google_compute_instance_group_manager.gpu.base_instance_name == "train-vm",
      google_compute_instance_group_manager.gpu.description == "aiinfra-cluster=3f9c2a71",
      google_compute_instance_group_manager.gpu.zone == "us-central1-a",
      google_compute_instance_group_manager.gpu.target_size == 2,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_group_manager.gpu.name, google_compute_instance_group_manager.gpu.base_instance_name, google_compute_instance_group_manager.gpu.description, google_compute_instance_group_manager.gpu.zone, google_compute_instance_group_manager.gpu.target_size])}."
  }
  assert {
    condition     = !google_compute_instance_group_manager.gpu.wait_for_instances
    error_message = "An apply waits for VMs and cannot be interrupted."
  }
  assert {
    condition = alltrue([
      google_compute_instance_group_manager.gpu.update_policy[0].type == "OPPORTUNISTIC",
      google_compute_instance_group_manager.gpu.update_policy[0].minimal_action == "RESTART",
      google_compute_instance_group_manager.gpu.update_policy[0].replacement_method == "RECREATE",
      google_compute_instance_group_manager.gpu.update_policy[0].max_surge_fixed == 0,
      google_compute_instance_group_manager.gpu.update_policy[0].max_unavailable_fixed == 1,
    ])
    error_message = "It is ${jsonencode(google_compute_instance_group_manager.gpu.update_policy)}."
  }
}

run "a_group_is_marked_by_its_own_name_and_in_the_region_of_its_zone" {
  command = plan

  variables {
    cluster_id        = null
    marker            = null
    metadata_identity = null
    region            = null
  }

  assert {
    condition = alltrue([
      google_compute_instance_group_manager.gpu.description == "aiinfra-cluster=train",
      google_compute_instance_template.gpu.labels.aiinfra-cluster == "train",
      google_compute_instance_template.gpu.region == "us-central1",
      nonsensitive(google_compute_instance_template.gpu.metadata.startup-script) == "true",
    ])
    error_message = "It is ${jsonencode([google_compute_instance_group_manager.gpu.description, google_compute_instance_template.gpu.labels, google_compute_instance_template.gpu.region])}."
  }
}

run "vms_boot_the_image_from_the_disk_that_was_asked_for_with_labels_and_marker" {
  command = plan

  variables {
    labels = { team = "ml" }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.labels == tomap({ team = "ml", aiinfra-cluster = "3f9c2a71" }),
      google_compute_instance_template.gpu.disk[0].labels == tomap({ team = "ml", aiinfra-cluster = "3f9c2a71" }),
      google_compute_instance_template.gpu.description == "aiinfra-cluster=3f9c2a71",
      google_compute_instance_template.gpu.disk[0].source_image == data.google_compute_image.boot.self_link,
      google_compute_instance_template.gpu.disk[0].disk_size_gb == 2000,
      google_compute_instance_template.gpu.disk[0].disk_type == "pd-ssd",
      google_compute_instance_template.gpu.disk[0].auto_delete,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.labels, google_compute_instance_template.gpu.description, google_compute_instance_template.gpu.disk[0]])}."
  }
}

run "vms_stop_for_maintenance_load_an_unsigned_driver_and_act_as_the_given_account" {
  command = plan

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE",
      google_compute_instance_template.gpu.scheduling[0].automatic_restart,
      !google_compute_instance_template.gpu.shielded_instance_config[0].enable_secure_boot,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.scheduling[0].on_host_maintenance, google_compute_instance_template.gpu.scheduling[0].automatic_restart, google_compute_instance_template.gpu.shielded_instance_config[0].enable_secure_boot])}."
  }
  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.shielded_instance_config[0].enable_vtpm,
      google_compute_instance_template.gpu.shielded_instance_config[0].enable_integrity_monitoring,
      google_compute_instance_template.gpu.service_account[0].email == "train-nodes@my-project.iam.gserviceaccount.com",
      google_compute_instance_template.gpu.service_account[0].scopes == toset(["https://www.googleapis.com/auth/cloud-platform"]),
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.shielded_instance_config[0].enable_vtpm, google_compute_instance_template.gpu.shielded_instance_config[0].enable_integrity_monitoring, google_compute_instance_template.gpu.service_account[0].email, google_compute_instance_template.gpu.service_account[0].scopes])}."
  }
  assert {
    condition = google_compute_instance_template.gpu.metadata == tomap({
      VmDnsSetting          = "ZonalPreferred"
      enable-oslogin        = "TRUE"
      install-nvidia-driver = "True"
      startup-script        = "true"
    })
    error_message = "The metadata is ${jsonencode(google_compute_instance_template.gpu.metadata)}."
  }
}

run "vms_have_one_gvnic_no_external_ip_and_the_gpus_of_their_machine_type" {
  command = plan

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.network_interface[*].nic_type == tolist(["GVNIC"]),
      google_compute_instance_template.gpu.network_interface[0].subnetwork == var.interfaces[0].subnetwork,
      length(google_compute_instance_template.gpu.network_interface[0].access_config) == 0,
      length(google_compute_instance_template.gpu.guest_accelerator) == 0,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.network_interface[*].nic_type, google_compute_instance_template.gpu.network_interface[0].subnetwork, google_compute_instance_template.gpu.network_interface[0].access_config, google_compute_instance_template.gpu.guest_accelerator])}."
  }
}

run "n1_vms_have_the_gpus_and_the_external_ip_that_were_asked_for" {
  command = plan

  variables {
    group = { instance_count = 2, machine_type = "n1-standard-8", gpu = { type = "nvidia-tesla-t4", count = 2 }, external_ip = true }
  }

  assert {
    condition = alltrue([
      [for gpu in google_compute_instance_template.gpu.guest_accelerator : "${gpu.count} ${gpu.type}"] == ["2 nvidia-tesla-t4"],
      length(google_compute_instance_template.gpu.network_interface[0].access_config) == 1,
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.guest_accelerator, google_compute_instance_template.gpu.network_interface[0].access_config])}."
  }
}

run "vms_have_their_interfaces_in_the_given_order_and_an_external_ip_on_the_first_only" {
  command = plan

  variables {
    group = { instance_count = 2, machine_type = "a3-ultragpu-8g", external_ip = true }
    interfaces = [
      for number in range(12) : {
        nic_type   = number < 2 ? "GVNIC" : "MRDMA"
        subnetwork = "projects/my-project/regions/us-central1/subnetworks/subnet-${number}"
      }
    ]
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.network_interface[*].subnetwork == tolist(var.interfaces[*].subnetwork),
      google_compute_instance_template.gpu.network_interface[*].nic_type == tolist(var.interfaces[*].nic_type),
      [for interface in google_compute_instance_template.gpu.network_interface : length(interface.access_config)] == concat([1], [for _ in range(11) : 0]),
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.network_interface[*].subnetwork, google_compute_instance_template.gpu.network_interface[*].nic_type, [for interface in google_compute_instance_template.gpu.network_interface : length(interface.access_config)]])}."
  }
}

run "the_users_metadata_wins_and_the_marker_wins_over_a_label_of_its_key" {
  command = plan

  variables {
    users_metadata = { enable-oslogin = "FALSE", purpose = "training" }
    labels         = { aiinfra-cluster = "mine" }
  }

  assert {
    condition = alltrue([
      google_compute_instance_template.gpu.metadata == tomap({
        VmDnsSetting          = "ZonalPreferred"
        aiinfra-metadata-keys = "enable-oslogin,purpose"
        enable-oslogin        = "FALSE"
        install-nvidia-driver = "True"
        purpose               = "training"
        startup-script        = "true"
      }),
      google_compute_instance_template.gpu.labels == tomap({ aiinfra-cluster = "3f9c2a71" }),
    ])
    error_message = "It is ${jsonencode([google_compute_instance_template.gpu.metadata, google_compute_instance_template.gpu.labels])}."
  }
}

run "refuses_a_boot_disk_that_is_smaller_than_the_image" {
  command = plan

  variables {
    boot_disk = { size_gb = 49, type = "pd-ssd" }
  }

  expect_failures = [google_compute_instance_template.gpu]
}

run "the_metadata_is_that_of_vms_and_not_what_stands_for_it_in_the_name" {
  command = plan

  variables {
    metadata          = { startup-script = "mount 10.1.2.2" }
    metadata_identity = { startup-script = "mount train-nfs" }
  }

  assert {
    condition     = google_compute_instance_template.gpu.metadata.startup-script == "mount 10.1.2.2"
    error_message = "The metadata is ${jsonencode(google_compute_instance_template.gpu.metadata)}."
  }
}
