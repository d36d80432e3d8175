module "network" {
  source = "../modules/network"

  cluster_id     = var.cluster_id
  name_prefix    = var.name_prefix
  network_config = var.network_config
  project_id     = var.project_id
  region         = var.region
}
