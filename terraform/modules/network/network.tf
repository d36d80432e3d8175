locals {
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.name_prefix}")

  _is_new = var.network_config == "new_network"

  # A network holds one subnetwork, with one range, in one region: in another region
  # there is another network beside it, as ranges of one network cannot overlap. So
  # names end with a hash of what they are bound to, and old and new have room beside
  # each other.
  _network_name = "${var.name_prefix}-net-${substr(sha256(var.region), 0, 8)}"
  _in_network   = one([for network in google_compute_network.new : substr(sha256(network.name), 0, 8)])
  _in_region    = one([for network in google_compute_network.new : substr(sha256("${network.name} ${var.region} ${var.ip_range}"), 0, 8)])

  # What exists is not looked up: who may use it need not have the right to read it.
  # Names, not ids or self links: a plan knows them before anything is made, and
  # they refer to the resource all the same, so that what uses them waits for it.
  _network    = one(concat(google_compute_network.new[*].name, data.google_compute_network.default[*].name))
  _subnetwork = one(concat(google_compute_subnetwork.new[*].name, data.google_compute_subnetwork.default[*].name))
}

data "google_compute_network" "default" {
  count = var.network_config == "default_network" ? 1 : 0

  name    = "default"
  project = var.project_id
}

data "google_compute_subnetwork" "default" {
  count = var.network_config == "default_network" ? 1 : 0

  name    = "default"
  project = var.project_id
  region  = var.region
}

resource "google_compute_network" "new" {
  count = local._is_new ? 1 : 0

  name                    = local._network_name
  project                 = var.project_id
  description             = local._marker
  auto_create_subnetworks = false
  # The greatest that Google's network carries; NCCL's messages are large.
  mtu = 8896

  lifecycle {
    # Written once: another text or another name would replace all that is in it. What
    # is replaced for another reason gets both anew.
    ignore_changes = [description, name]
  }
}

resource "google_compute_subnetwork" "new" {
  count = local._is_new ? 1 : 0

  name          = "${var.name_prefix}-primary-subnet-${local._in_region}"
  project       = var.project_id
  region        = var.region
  description   = local._marker
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
    # Written once: another text or another name would replace all that is in it. What
    # is replaced for another reason gets both anew.
    ignore_changes = [description, name]
  }
}
