locals {
  # The provider's id has the project's number, or its id once it was imported.
  _name = basename(google_monitoring_dashboard.cluster.id)
}

output "dashboard" {
  description = "The dashboard: id (projects/PROJECT/dashboards/NAME) and url, for a browser."
  value = {
    id  = "projects/${var.project_id}/dashboards/${local._name}"
    url = "https://console.cloud.google.com/monitoring/dashboards/builder/${local._name}?project=${var.project_id}"
  }
}
