locals {
  _interfaces = concat(
    [{ nic_type = "GVNIC", subnetwork = module.network.subnetwork }],
    try(var.existing.interfaces, []),
    module.gpu_networks.interfaces,
  )
}

module "network" {
  source = "../modules/network"

  existing       = var.existing
  marker         = local._marker
  ip_range       = var.ip_ranges.first
  name_prefix    = var.name_prefix
  network_config = contains(["default_network", "existing"], var.network_config) ? var.network_config : "new_network"
  project_id     = var.project_id
  region         = local._region
}

# The ports of Ray and of Slurm are open to this cluster's own account alone. Whoever runs VMs as the
# project's default account has many others that act as it: there Ray's token is all. In a
# network of others no rule is made.
module "ray_firewall" {
  source = "../modules/ray-firewall"
  count  = (var.startup.ray != null || var.startup.slurm != null) && var.existing == null && (var.service_account.create || var.service_account.email != null) ? 1 : 0

  marker                = local._marker
  name_prefix           = var.name_prefix
  network               = module.network.network
  ports                 = var.startup.slurm == null ? module.startup.ray_ports : module.startup.slurm_ports
  project_id            = var.project_id
  service_account_email = module.service_account.email
  word                  = var.startup.slurm == null ? "ray" : "slurm"
}

module "gpu_networks" {
  source = "../modules/gpu-networks"

  marker      = local._marker
  ip_block    = var.ip_ranges.block
  name_prefix = var.name_prefix
  networks    = var.gpu_networks
  project_id  = var.project_id
  region      = local._region
  zone        = var.zone
}
