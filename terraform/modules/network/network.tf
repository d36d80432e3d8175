locals {
  _is_new = var.network_config == "new_network"

  # Names, not ids or self links: a plan knows them before anything is made, and
  # they refer to the resource all the same, so that what uses them waits for it.
  _network    = one(concat(google_compute_network.new[*].name, data.google_compute_network.default[*].name))
  _subnetwork = one(concat(google_compute_subnetwork.new[*].name, data.google_compute_subnetwork.default[*].name))
}

data "google_compute_network" "default" {
  count = local._is_new ? 0 : 1

  name    = "default"
  project = var.project_id
}

data "google_compute_subnetwork" "default" {
  count = local._is_new ? 0 : 1

  name    = "default"
  project = var.project_id
  region  = var.region
}

resource "google_compute_network" "new" {
  count = local._is_new ? 1 : 0

  name                    = "${var.name_prefix}-net"
  project                 = var.project_id
  description             = var.marker
  auto_create_subnetworks = false
  # The greatest that Google's network carries; NCCL's messages are large.
  mtu = 8896

  lifecycle {
    # Written once: a deployment of the first version, whose marker is older, keeps it
    # here, as another text would replace all that is in it.
    ignore_changes = [description]
  }
}

resource "google_compute_subnetwork" "new" {
  count = local._is_new ? 1 : 0

  name          = "${var.name_prefix}-primary-subnet"
  project       = var.project_id
  region        = var.region
  description   = var.marker
  network       = google_compute_network.new[0].id
  ip_cidr_range = var.ip_range
  # Google's APIs and container images stay off the NAT.
  private_ip_google_access = true

  dynamic "secondary_ip_range" {
    for_each = var.secondary_ranges

    content {
      range_name    = secondary_ip_range.key
      ip_cidr_range = secondary_ip_range.value
    }
  }

  lifecycle {
    # Written once: a deployment of the first version, whose marker is older, keeps it
    # here, as another text would replace all that is in it.
    ignore_changes = [description]
  }
}
