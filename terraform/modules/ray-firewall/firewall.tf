locals {
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.name_prefix}")

  # Names end with a hash of the network: the provider would try to move a rule to
  # another one, which Google refuses.
  _in_network = substr(sha256(basename(var.network)), 0, 8)

  # Before every rule that has no priority of its own (1000), and before those of the
  # default network (65534), which let in all of its machines. An allow alone would
  # add nothing to them.
  _before_all_others = { allow = 800, deny = 801 }
}

# Source accounts cannot stand beside tags in one rule; with target accounts they can.
resource "google_compute_firewall" "allow" {
  name                    = "${var.name_prefix}-${var.word}-allow-${local._in_network}"
  project                 = var.project_id
  description             = local._marker
  network                 = var.network
  direction               = "INGRESS"
  priority                = local._before_all_others.allow
  source_service_accounts = [var.service_account_email]
  target_service_accounts = [var.service_account_email]

  allow {
    protocol = "tcp"
    ports    = var.ports
  }
}

resource "google_compute_firewall" "deny" {
  name                    = "${var.name_prefix}-${var.word}-deny-${local._in_network}"
  project                 = var.project_id
  description             = local._marker
  network                 = var.network
  direction               = "INGRESS"
  priority                = local._before_all_others.deny
  source_ranges           = ["0.0.0.0/0"]
  target_service_accounts = [var.service_account_email]

  deny {
    protocol = "tcp"
    ports    = var.ports
  }

  # The cluster's own VMs are never shut out, not even for a moment.
  depends_on = [google_compute_firewall.allow]
}
