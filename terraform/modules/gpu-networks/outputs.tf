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
