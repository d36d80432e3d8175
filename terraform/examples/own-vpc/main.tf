# Two VMs with an L4 each in a network of their own, without external addresses: they go out by Cloud NAT,
# and people come by Identity-Aware Proxy. Each module could be yours in its place.

provider "google" {
  project = local._project
  region  = local._region

  # Labels are those that the modules write: a template's name is a hash of them.
  add_terraform_attribution_label = false
}

locals {
  _name    = "train"
  _project = "my-project"
  _region  = "us-central1"
}

module "network" {
  source = "../../modules/network"

  ip_range    = "10.20.0.0/20"
  name_prefix = local._name
  project_id  = local._project
  region      = local._region
}

module "service_account" {
  source = "../../modules/service-account"

  name_prefix = local._name
  project_id  = local._project
}

# Optional: what waits for the driver, mounts storage and runs a command at each boot.
module "startup" {
  source = "../../modules/startup"

  command     = "nvidia-smi"
  name_prefix = local._name
  startup     = { gpus = { count = 1, accelerator = "nvidia-l4" } }
}

module "gpu_mig" {
  source = "../../modules/gpu-mig"

  boot_disk             = { size_gb = 200 }
  group                 = { instance_count = 2, machine_type = "g2-standard-8" }
  image                 = { project = "deeplearning-platform-release", family = "pytorch-2-9-cu129-ubuntu-2404-nvidia-580" }
  interfaces            = [{ nic_type = "GVNIC", subnetwork = module.network.subnetwork }]
  metadata              = module.startup.metadata
  name_prefix           = local._name
  project_id            = local._project
  service_account_email = module.service_account.email
  zone                  = "${local._region}-a"
}

output "group" {
  value = module.gpu_mig.group
}

output "network" {
  value = module.network.network
}
