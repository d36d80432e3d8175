# The way out for VMs without an external IP. A NAT has neither labels nor a
# description; its router carries the marker for both.

resource "google_compute_router" "new" {
  count = local._is_new ? 1 : 0

  name        = "${var.name_prefix}-router-${local._in_region}"
  project     = var.project_id
  region      = var.region
  description = local._marker
  network     = google_compute_network.new[0].id

  lifecycle {
    ignore_changes = [name]
  }
}

resource "google_compute_router_nat" "new" {
  count = local._is_new ? 1 : 0

  name                               = "${var.name_prefix}-nat"
  project                            = var.project_id
  region                             = google_compute_router.new[0].region
  router                             = google_compute_router.new[0].name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  # A machine that pulls a large image, or many packages, has more connections to one
  # place than the 64 ports that Google gives each by itself.
  enable_dynamic_port_allocation      = true
  enable_endpoint_independent_mapping = false # no dynamic ports with it (provider's documentation)
  min_ports_per_vm                    = 1024
  max_ports_per_vm                    = 32768

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
