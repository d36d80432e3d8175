locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)
  _marker     = coalesce(var.marker, "aiinfra-cluster=${local._cluster_id}")
  _region     = coalesce(var.region, regex("^[a-z]+-[a-z]+[0-9]+", var.zone))

  # A VM of the default network has no other way out.
  _external_ip = coalesce(var.group.external_ip, var.network_config == "default_network")
}

module "gpu_mig" {
  source = "../modules/gpu-mig"

  boot_disk             = var.boot_disk
  capacity              = var.capacity
  cluster_id            = local._cluster_id
  group                 = merge(var.group, { external_ip = local._external_ip })
  image                 = var.image
  interfaces            = local._interfaces
  labels                = var.labels
  metadata              = module.startup.metadata
  metadata_identity     = module.startup_identity.metadata
  marker                = local._marker
  name_prefix           = var.name_prefix
  project_id            = var.project_id
  region                = local._region
  resize_requests       = var.resize_requests
  service_account_email = module.service_account.email
  users_metadata        = var.metadata
  zone                  = var.zone
}
