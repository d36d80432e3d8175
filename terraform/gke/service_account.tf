locals {
  # What GKE's agents on a node write, and where its containers' images come from.
  # None in Cloud Storage: a role in the project would open the Terraform state to
  # each pod. The mounted buckets' roles are in storage.tf.
  _node_roles = [
    "roles/artifactregistry.reader",
    "roles/logging.logWriter",
    "roles/monitoring.metricWriter",
    "roles/monitoring.viewer",
    "roles/stackdriver.resourceMetadata.writer",
  ]
}

module "service_account" {
  source = "../modules/service-account"

  account = {
    suffix = "nodes"
    bearer = "Nodes"
    roles  = local._node_roles
  }
  marker          = var.marker
  name_prefix     = var.name_prefix
  project_id      = var.project_id
  service_account = var.service_account
}

module "workload_account" {
  source = "../modules/service-account"

  account = {
    suffix = "workload"
    bearer = "Pods"
    roles  = local._node_roles
  }
  marker          = var.marker
  name_prefix     = var.name_prefix
  project_id      = var.project_id
  service_account = { create = true }
}
