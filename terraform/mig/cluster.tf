module "gpu_mig" {
  source = "../modules/gpu-mig"

  boot_disk             = var.boot_disk
  capacity              = var.capacity
  cluster_id            = var.cluster_id
  group                 = var.group
  image                 = var.image
  interfaces            = local._interfaces
  labels                = var.labels
  metadata              = module.startup.metadata
  metadata_identity     = module.startup_identity.metadata
  marker                = var.marker
  name_prefix           = var.name_prefix
  project_id            = var.project_id
  region                = var.region
  resize_requests       = var.resize_requests
  service_account_email = module.service_account.email
  users_metadata        = var.metadata
  zone                  = var.zone
}
