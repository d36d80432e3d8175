locals {
  # The first sixteenth for the first interface, one more for each other.
  _ip_block = "10.0.0.0/12"

  _interfaces = concat(
    [{ nic_type = "GVNIC", subnetwork = module.network.subnetwork }],
    module.gpu_networks.interfaces,
  )
}

module "network" {
  source = "../modules/network"

  marker         = var.marker
  ip_range       = cidrsubnet(local._ip_block, 4, 0)
  name_prefix    = var.name_prefix
  network_config = var.network_config == "default_network" ? "default_network" : "new_network"
  project_id     = var.project_id
  region         = var.region
}

module "gpu_networks" {
  source = "../modules/gpu-networks"

  marker      = var.marker
  ip_block    = local._ip_block
  name_prefix = var.name_prefix
  networks    = var.gpu_networks
  project_id  = var.project_id
  region      = var.region
  zone        = var.zone
}
