# A VM's GPUs talk as soon as it runs, so it waits for the rules that let them.
output "interfaces" {
  description = "A VM's interfaces after the first, in order: nic_type, and subnetwork as projects/P/regions/R/subnetworks/S; known at plan."
  value = [
    for index, interface in local._interfaces : {
      nic_type   = interface.nic_type
      subnetwork = "projects/${var.project_id}/regions/${var.region}/subnetworks/${google_compute_subnetwork.gpu[index + 1].name}"
    }
  ]
  depends_on = [google_compute_firewall.internal]
}

# GKE compares these as it got them: a path in place of a name replaces the pool.
output "names" {
  description = "The same interfaces as GKE asks for them: the bare names of network and subnetwork, and nic_type; known at plan."
  value = [
    for index, interface in local._interfaces : {
      network    = google_compute_network.gpu[interface.network].name
      nic_type   = interface.nic_type
      subnetwork = google_compute_subnetwork.gpu[index + 1].name
    }
  ]
  depends_on = [google_compute_firewall.internal]
}
