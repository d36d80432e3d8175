locals {
  # All clusters of a project share its pool, so the same name in another cluster would be
  # the same member: it is named as the account, which there is once in the project.
  _kubernetes_account = split("@", var.workload_account_email)[0]
}

# Pods of this Kubernetes account act as the workload account, without a key.
resource "google_service_account_iam_member" "pods" {
  service_account_id = "projects/${var.project_id}/serviceAccounts/${var.workload_account_email}"
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${local._workload_pool}[default/${local._kubernetes_account}]"

  # The identity pool of a project comes with its first cluster.
  depends_on = [google_container_cluster.gke]
}
