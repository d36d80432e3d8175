mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      disk_size_gb = 50
      name         = "pytorch-v1"
      self_link    = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

variables {
  boot_disk             = { size_gb = 2000, type = "pd-ssd" }
  capacity              = { model = "standard", compact = false }
  cluster_id            = "3f9c2a71"
  marker                = "aiinfra-cluster=3f9c2a71"
  group                 = { instance_count = 2, machine_type = "a2-highgpu-2g", external_ip = false }
  image                 = { project = "images", family = "pytorch" }
  interfaces            = [{ nic_type = "GVNIC", subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet" }]
  labels                = { team = "ml" }
  metadata              = { startup-script = "true" }
  metadata_identity     = { startup-script = "true" }
  name_prefix           = "train"
  project_id            = "my-project"
  region                = "us-central1"
  resize_requests       = {}
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  users_metadata        = {}
  zone                  = "us-central1-a"
}

run "vms_boot_the_image_from_the_disk_that_was_asked_for_with_labels_and_marker" {
  command = plan

  assert {
    condition     = google_compute_instance_template.gpu.labels == tomap({ team = "ml", aiinfra-cluster = "3f9c2a71" })
    error_message = "The labels are ${jsonencode(google_compute_instance_template.gpu.labels)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.disk[0].labels == tomap({ team = "ml", aiinfra-cluster = "3f9c2a71" })
    error_message = "The disk's labels are ${jsonencode(google_compute_instance_template.gpu.disk[0].labels)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.description == "aiinfra-cluster=3f9c2a71"
    error_message = "The description is ${google_compute_instance_template.gpu.description}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.disk[0].source_image == data.google_compute_image.boot.self_link
    error_message = "The image is ${google_compute_instance_template.gpu.disk[0].source_image}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.disk[0].disk_size_gb == 2000 && google_compute_instance_template.gpu.disk[0].disk_type == "pd-ssd"
    error_message = "The disk is ${jsonencode(google_compute_instance_template.gpu.disk[0])}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.disk[0].auto_delete
    error_message = "The disk outlives its VM."
  }
}

run "vms_stop_for_maintenance_load_an_unsigned_driver_and_act_as_the_given_account" {
  command = plan

  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].on_host_maintenance == "TERMINATE"
    error_message = "At maintenance: ${google_compute_instance_template.gpu.scheduling[0].on_host_maintenance}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.scheduling[0].automatic_restart
    error_message = "VMs stay down."
  }
  assert {
    condition     = !google_compute_instance_template.gpu.shielded_instance_config[0].enable_secure_boot
    error_message = "Secure boot is on."
  }
  assert {
    condition     = google_compute_instance_template.gpu.shielded_instance_config[0].enable_vtpm && google_compute_instance_template.gpu.shielded_instance_config[0].enable_integrity_monitoring
    error_message = "The boot is not measured."
  }
  assert {
    condition     = google_compute_instance_template.gpu.service_account[0].email == "train-nodes@my-project.iam.gserviceaccount.com"
    error_message = "The account is ${google_compute_instance_template.gpu.service_account[0].email}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.service_account[0].scopes == toset(["https://www.googleapis.com/auth/cloud-platform"])
    error_message = "The scopes are ${jsonencode(google_compute_instance_template.gpu.service_account[0].scopes)}."
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
    condition     = google_compute_instance_template.gpu.network_interface[*].nic_type == tolist(["GVNIC"])
    error_message = "The interfaces are ${jsonencode(google_compute_instance_template.gpu.network_interface[*].nic_type)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.network_interface[0].subnetwork == var.interfaces[0].subnetwork
    error_message = "The subnetwork is ${google_compute_instance_template.gpu.network_interface[0].subnetwork}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.network_interface[0].access_config) == 0
    error_message = "VMs have an external IP."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.guest_accelerator) == 0
    error_message = "Attached: ${jsonencode(google_compute_instance_template.gpu.guest_accelerator)}."
  }
}

run "n1_vms_have_the_gpus_and_the_external_ip_that_were_asked_for" {
  command = plan

  variables {
    group = { instance_count = 2, machine_type = "n1-standard-8", gpu = { type = "nvidia-tesla-t4", count = 2 }, external_ip = true }
  }

  assert {
    condition     = [for gpu in google_compute_instance_template.gpu.guest_accelerator : "${gpu.count} ${gpu.type}"] == ["2 nvidia-tesla-t4"]
    error_message = "Attached: ${jsonencode(google_compute_instance_template.gpu.guest_accelerator)}."
  }
  assert {
    condition     = length(google_compute_instance_template.gpu.network_interface[0].access_config) == 1
    error_message = "VMs have no external IP."
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
    condition     = google_compute_instance_template.gpu.network_interface[*].subnetwork == tolist(var.interfaces[*].subnetwork)
    error_message = "The subnetworks are ${jsonencode(google_compute_instance_template.gpu.network_interface[*].subnetwork)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.network_interface[*].nic_type == tolist(var.interfaces[*].nic_type)
    error_message = "The types are ${jsonencode(google_compute_instance_template.gpu.network_interface[*].nic_type)}."
  }
  assert {
    condition     = [for interface in google_compute_instance_template.gpu.network_interface : length(interface.access_config)] == concat([1], [for _ in range(11) : 0])
    error_message = "External IPs: ${jsonencode([for interface in google_compute_instance_template.gpu.network_interface : length(interface.access_config)])}."
  }
}

run "the_users_metadata_wins_and_the_marker_wins_over_a_label_of_its_key" {
  command = plan

  variables {
    users_metadata = { enable-oslogin = "FALSE", purpose = "training" }
    labels         = { aiinfra-cluster = "mine" }
  }

  assert {
    condition = google_compute_instance_template.gpu.metadata == tomap({
      VmDnsSetting          = "ZonalPreferred"
      aiinfra-metadata-keys = "enable-oslogin,purpose"
      enable-oslogin        = "FALSE"
      install-nvidia-driver = "True"
      purpose               = "training"
      startup-script        = "true"
    })
    error_message = "The metadata is ${jsonencode(google_compute_instance_template.gpu.metadata)}."
  }
  assert {
    condition     = google_compute_instance_template.gpu.labels == tomap({ aiinfra-cluster = "3f9c2a71" })
    error_message = "The labels are ${jsonencode(google_compute_instance_template.gpu.labels)}."
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
