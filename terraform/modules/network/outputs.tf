output "network" {
  description = "The network, as projects/P/global/networks/N; known at plan."
  value       = var.existing != null ? var.existing.network : "projects/${var.project_id}/global/networks/${local._network}"
  depends_on = [
    google_compute_firewall.existing,
    google_compute_firewall.internal,
    google_compute_firewall.iap_ssh,
  ]
}

output "router" {
  description = "The router of Cloud NAT, as projects/P/regions/R/routers/N, for what else goes by it; null where none is made."
  value       = one(google_compute_router.new[*].id)
}

# A VM's first minute downloads drivers and packages, so it waits for the NAT.
output "subnetwork" {
  description = "The subnetwork, as projects/P/regions/R/subnetworks/S; known at plan. A VM there reaches the internet and its peers."
  value       = var.existing != null ? var.existing.subnetwork : "projects/${var.project_id}/regions/${var.region}/subnetworks/${local._subnetwork}"
  depends_on = [
    google_compute_firewall.existing,
    google_compute_firewall.internal,
    google_compute_firewall.iap_ssh,
    google_compute_router_nat.new,
  ]
}
