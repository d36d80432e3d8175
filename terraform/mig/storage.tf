module "gcs_mounts" {
  source = "../modules/gcs-mounts"

  cluster_id            = local._cluster_id
  marker                = local._marker
  gcs_mounts            = var.gcs_mounts
  options               = var.gcs_options
  service_account_email = module.service_account.email
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

module "files" {
  source = "../modules/files"

  marker = local._marker
  files  = var.files
  parts = merge(
    var.startup.ray == null ? {} : { ray = { role = "roles/storage.objectUser" } },
    {
      # What VMs run comes from where they can't write.
      jobs = { role = "roles/storage.objectViewer" }
      vms  = { role = "roles/storage.objectUser", listed = true }
    },
  )
  service_account_email = module.service_account.email
  state_folder          = var.state_folder
}
