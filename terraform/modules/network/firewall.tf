resource "google_compute_firewall" "internal" {
  count = local._is_new ? 1 : 0

  name          = "${var.name_prefix}-internal-${local._in_network}"
  project       = var.project_id
  description   = local._marker
  network       = google_compute_network.new[0].id
  direction     = "INGRESS"
  source_ranges = [var.ip_range]

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
    replace_triggered_by = [google_compute_network.new[count.index].id]
  }
}

resource "google_compute_firewall" "iap_ssh" {
  count = local._is_new ? 1 : 0

  name        = "${var.name_prefix}-iap-ssh-${local._in_network}"
  project     = var.project_id
  description = local._marker
  network     = google_compute_network.new[0].id
  direction   = "INGRESS"
  # Identity-Aware Proxy's own range: who may come through is decided by IAM.
  source_ranges = ["35.235.240.0/20"]

  allow {
    protocol = "tcp"
    ports    = ["22"]
  }

  lifecycle {
    ignore_changes       = [name]
    replace_triggered_by = [google_compute_network.new[count.index].id]
  }
}

# In a network of others, whose team has agreed to rules of ours. Each bears the marker, and
# what is in that project beside it is left alone.
resource "google_compute_firewall" "existing" {
  for_each = { for rule in try(var.existing.rules, []) : rule.name => rule }

  name          = "${each.key}-${substr(sha256(basename(each.value.network)), 0, 8)}"
  project       = split("/", each.value.network)[1]
  description   = local._marker
  network       = each.value.network
  direction     = "INGRESS"
  source_ranges = [each.value.source]

  dynamic "allow" {
    for_each = each.value.allow

    content {
      protocol = allow.value.protocol
      ports    = allow.value.ports
    }
  }
}
