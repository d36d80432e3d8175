# Pods of this Kubernetes account act as the workload account, without a key.
resource "google_service_account_iam_member" "workload" {
  service_account_id = "projects/${var.project_id}/serviceAccounts/${var.workload_account_email}"
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${local._workload_pool}[default/workload-identity-k8s-sa]"

  # The identity pool of a project comes with its first cluster.
  depends_on = [google_container_cluster.gke]
}
