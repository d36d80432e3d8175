locals {
  # What pods write, and where their images come from. None in Cloud Storage: a role
  # in the project would open the Terraform state to each pod. The mounted buckets'
  # roles are in storage.tf.
  _pod_roles = [
    "roles/artifactregistry.reader",
    "roles/logging.logWriter",
    "roles/monitoring.metricWriter",
    "roles/monitoring.viewer",
    "roles/stackdriver.resourceMetadata.writer",
  ]

  # GKE's agents on a node also write what pods are scaled by.
  _node_roles = concat(local._pod_roles, ["roles/autoscaling.metricsWriter"])
}

module "service_account" {
  source = "../modules/service-account"

  account = {
    suffix = "nodes"
    bearer = "Nodes"
    roles  = local._node_roles
  }
  marker          = local._marker
  name_prefix     = var.name_prefix
  project_id      = var.project_id
  service_account = var.service_account
}

module "workload_account" {
  source = "../modules/service-account"

  account = {
    suffix = "workload"
    bearer = "Pods"
    roles  = local._pod_roles
  }
  marker          = local._marker
  name_prefix     = var.name_prefix
  project_id      = var.project_id
  secrets         = toset([for secret in var.secrets : secret.secret if secret.project == var.project_id])
  service_account = { create = true }
}
