locals {
  _labels = merge(var.labels, { aiinfra-cluster = local._cluster_id })

  # All that the template holds, and nothing but what a plan knows. A template
  # cannot be changed in place and a name cannot be used twice, so the name is a
  # hash of this object: other content is another template, equal content is none.
  # Hence the resource below takes every argument from here, constants too. The
  # metadata is sensitive, a hash of it is not.
  _template = {
    description  = local._marker
    labels       = local._labels
    machine_type = var.group.machine_type
    project      = var.project_id
    region       = local._region

    accelerators = var.group.gpu[*]

    # The user's keys win over the first, and are none of the last. They are listed:
    # one that is no longer wanted can then be told on a VM from what others added.
    metadata = merge({
      VmDnsSetting          = "ZonalPreferred"
      enable-oslogin        = "TRUE"
      install-nvidia-driver = "True"
      }, var.users_metadata, length(var.users_metadata) == 0 ? {} : {
      aiinfra-metadata-keys = join(",", keys(var.users_metadata))
    }, var.metadata_identity == null ? var.metadata : var.metadata_identity)

    # With a key only if there is one: its absence must not change the name.
    boot_disk = merge({
      auto_delete  = true
      boot         = true
      labels       = local._labels
      size_gb      = var.boot_disk.size_gb
      source_image = data.google_compute_image.boot.self_link
      type         = var.boot_disk.type
    }, { for key in var.boot_disk.kms_key[*] : "kms_key" => key })

    # In order: software for GPU networks goes by an interface's number.
    interfaces = [
      for index, interface in var.interfaces : {
        nic_type   = interface.nic_type
        subnetwork = interface.subnetwork
        # One access configuration is one external IP, none is none.
        access_tiers = index == 0 && var.group.external_ip ? ["PREMIUM"] : []
      }
    ]

    placement    = local._placement
    reservations = local._capacity.reservations

    # VMs with GPUs cannot move to another host while they run.
    scheduling = {
      automatic_restart   = local._capacity.automatic_restart
      max_run_seconds     = var.capacity.max_run_seconds[*]
      on_host_maintenance = "TERMINATE"
      preemptible         = var.capacity.model == "spot"
      provisioning_model  = local._capacity.provisioning_model
      termination_action  = local._capacity.ends || var.capacity.max_run_seconds != null ? "DELETE" : null
    }

    # The scope allows all; the account's roles decide.
    service_account = {
      email  = var.service_account_email
      scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    }

    # Secure boot refuses an NVIDIA driver that is built on the VM, unsigned.
    shielded = {
      integrity_monitoring = true
      secure_boot          = var.group.secure_boot
      vtpm                 = true
    }
  }

  _template_name = "${var.name_prefix}-${substr(nonsensitive(sha256(jsonencode(local._template))), 0, 8)}"
}

data "google_compute_image" "boot" {
  project = var.image.project
  family  = var.image.family
  name    = var.image.name
}

resource "google_compute_instance_template" "gpu" {
  name         = local._template_name
  project      = local._template.project
  region       = local._template.region
  description  = local._template.description
  labels       = local._template.labels
  machine_type = local._template.machine_type

  # Each value that is not known at plan in its place.
  metadata = merge(local._template.metadata, var.metadata)

  resource_policies = local._template.placement

  disk {
    auto_delete  = local._template.boot_disk.auto_delete
    boot         = local._template.boot_disk.boot
    disk_size_gb = local._template.boot_disk.size_gb
    disk_type    = local._template.boot_disk.type
    labels       = local._template.boot_disk.labels
    source_image = local._template.boot_disk.source_image

    dynamic "disk_encryption_key" {
      for_each = try([local._template.boot_disk.kms_key], [])

      content {
        kms_key_self_link = disk_encryption_key.value
      }
    }
  }

  dynamic "guest_accelerator" {
    for_each = local._template.accelerators

    content {
      count = guest_accelerator.value.count
      type  = guest_accelerator.value.type
    }
  }

  dynamic "network_interface" {
    for_each = local._template.interfaces

    content {
      nic_type   = network_interface.value.nic_type
      subnetwork = network_interface.value.subnetwork

      dynamic "access_config" {
        for_each = network_interface.value.access_tiers

        content {
          network_tier = access_config.value
        }
      }
    }
  }

  dynamic "reservation_affinity" {
    for_each = local._template.reservations

    content {
      type = reservation_affinity.value.type

      dynamic "specific_reservation" {
        for_each = reservation_affinity.value.specific

        content {
          key    = specific_reservation.value.key
          values = specific_reservation.value.values
        }
      }
    }
  }

  scheduling {
    automatic_restart           = local._template.scheduling.automatic_restart
    instance_termination_action = local._template.scheduling.termination_action
    on_host_maintenance         = local._template.scheduling.on_host_maintenance
    preemptible                 = local._template.scheduling.preemptible
    provisioning_model          = local._template.scheduling.provisioning_model

    dynamic "max_run_duration" {
      for_each = local._template.scheduling.max_run_seconds

      content {
        seconds = max_run_duration.value
      }
    }
  }

  service_account {
    email  = local._template.service_account.email
    scopes = local._template.service_account.scopes
  }

  shielded_instance_config {
    enable_integrity_monitoring = local._template.shielded.integrity_monitoring
    enable_secure_boot          = local._template.shielded.secure_boot
    enable_vtpm                 = local._template.shielded.vtpm
  }

  lifecycle {
    # The group uses the old template until it is given the new one.
    create_before_destroy = true

    precondition {
      condition     = var.boot_disk.size_gb >= data.google_compute_image.boot.disk_size_gb
      error_message = "A boot disk is at least as large as its image; received ${var.boot_disk.size_gb} GiB for ${data.google_compute_image.boot.name}. ${data.google_compute_image.boot.disk_size_gb} would pass."
    }
  }
}
