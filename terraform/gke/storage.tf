# Pods mount buckets as the workload account, through GKE's own driver.
module "gcs_mounts" {
  source = "../modules/gcs-mounts"

  cluster_id            = local._cluster_id
  marker                = local._marker
  gcs_mounts            = var.gcs_mounts
  options               = [] # the volumes have them
  service_account_email = module.workload_account.email
  state_folder          = var.state_folder
}

module "filestore" {
  source = "../modules/filestore"

  cluster_id  = local._cluster_id
  filestores  = var.filestores
  labels      = var.labels
  marker      = local._marker
  name_prefix = var.name_prefix
  network     = module.network.network
  project_id  = var.project_id
}

# A job's pods fetch its folder, and keep what they say where they can't change what runs.
module "files" {
  source = "../modules/files"

  marker = local._marker
  files  = {}
  parts = {
    "jobs/files" = { role = "roles/storage.objectViewer" }
    pods         = { role = "roles/storage.objectUser", listed = true }
  }
  service_account_email = module.workload_account.email
  state_folder          = var.state_folder
}
