module "gpu_mig" {
  source = "../modules/gpu-mig"

  boot_disk             = var.boot_disk
  cluster_id            = var.cluster_id
  group                 = var.group
  image                 = var.image
  interfaces            = local._interfaces
  labels                = var.labels
  name_prefix           = var.name_prefix
  project_id            = var.project_id
  region                = var.region
  service_account_email = module.service_account.email
  zone                  = var.zone
}
