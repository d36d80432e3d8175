locals {
  _kind   = var.kind == null ? "" : var.kind
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.name_prefix}")

  _networks = {
    for index, network in var.networks : index + 1 => merge(network, {
      # With any other form of the path the provider replaces the network each time.
      profile_path = network.profile == null ? null : "projects/${var.project_id}/global/networkProfiles/${var.zone}-${network.profile}"
    })
  }

  # A network is bound to its MTU, and to its profile, which is a zone's, or through its
  # subnetworks to a region. Names end with a hash of what they are bound to, so that
  # old and new have room beside each other.
  _bound = {
    for number, network in local._networks : number =>
    substr(sha256("${network.profile == null ? var.region : "${var.zone}-${network.profile}"} ${network.mtu}"), 0, 8)
  }

  # A list, as a map would sort interface 10 before interface 2. The n-th place is
  # that of interface n, whichever network it is in, and decides name and range: the
  # ranges of all networks are cut from one block and cannot overlap.
  _interfaces = flatten([
    for index, network in var.networks : [
      for _ in range(network.subnets) : { network = tostring(index + 1), nic_type = network.nic_type }
    ]
  ])
  _subnetworks = {
    for index, interface in local._interfaces : index + 1 => {
      ip_range = cidrsubnet(var.ip_block, 4, index + 1)
      network  = interface.network
    }
  }
}

resource "google_compute_network" "gpu" {
  for_each = local._networks

  name                    = "${var.name_prefix}-gpu-net-${local._kind}${each.key}-${local._bound[each.key]}"
  project                 = var.project_id
  description             = local._marker
  auto_create_subnetworks = false
  mtu                     = each.value.mtu
  network_profile         = each.value.profile_path

  lifecycle {
    # Written once: another text or another name would replace all that is in it. What
    # is replaced for another reason gets both anew.
    ignore_changes = [description, name]
  }
}

resource "google_compute_subnetwork" "gpu" {
  for_each = local._subnetworks

  name          = "${var.name_prefix}-gpu-subnet-${local._kind}${each.key}-${substr(sha256("${google_compute_network.gpu[each.value.network].name} ${var.region} ${each.value.ip_range}"), 0, 8)}"
  project       = var.project_id
  region        = var.region
  description   = local._marker
  network       = google_compute_network.gpu[each.value.network].id
  ip_cidr_range = each.value.ip_range

  lifecycle {
    # Written once: another text or another name would replace all that is in it. What
    # is replaced for another reason gets both anew.
    ignore_changes = [description, name]
  }
}

# Networks with a profile are open inside and take no rules.
resource "google_compute_firewall" "internal" {
  for_each = { for number, network in local._networks : number => network if network.profile == null }

  name          = "${var.name_prefix}-gpu-internal-${local._kind}${each.key}-${substr(sha256(google_compute_network.gpu[each.key].name), 0, 8)}"
  project       = var.project_id
  description   = local._marker
  network       = google_compute_network.gpu[each.key].id
  direction     = "INGRESS"
  source_ranges = [for subnetwork in local._subnetworks : subnetwork.ip_range if subnetwork.network == each.key]

  allow {
    protocol = "tcp"
  }
  allow {
    protocol = "udp"
  }
  allow {
    protocol = "icmp"
  }

  lifecycle {
    ignore_changes = [name]
    # The provider would try to move a rule to another network, which Google refuses.
    replace_triggered_by = [google_compute_network.gpu[each.key].id]
  }
}
