# A GKE cluster in a network of its own, with a pool of one node with an L4. GPU-less pods stay off that node.

provider "google" {
  project = local._project
  region  = local._region
}

locals {
  _name    = "train"
  _project = "my-project"
  _region  = "us-central1"
  _zone    = "us-central1-a"
}

module "network" {
  source = "../../modules/network"

  name_prefix      = local._name
  project_id       = local._project
  region           = local._region
  secondary_ranges = { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
}

module "nodes" {
  source = "../../modules/service-account"

  account     = { suffix = "nodes", bearer = "Nodes", roles = ["roles/container.defaultNodeServiceAccount"] }
  name_prefix = local._name
  project_id  = local._project
}

module "pods" {
  source = "../../modules/service-account"

  account     = { suffix = "workload", bearer = "Pods", roles = ["roles/artifactregistry.reader"] }
  name_prefix = local._name
  project_id  = local._project
}

module "gke_cluster" {
  source = "../../modules/gke-cluster"

  cluster                = { location = local._region }
  name_prefix            = local._name
  network                = module.network.network
  node_account_email     = module.nodes.email
  project_id             = local._project
  subnetwork             = module.network.subnetwork
  system_pool            = { zone = local._zone }
  workload_account_email = module.pods.email
}

module "gke_nodepool" {
  source = "../../modules/gke-nodepool"

  cluster               = module.gke_cluster.control_plane
  cluster_id            = local._name
  name                  = "${local._name}-l4"
  pool                  = { machine_type = "g2-standard-8", zone = local._zone, gpu = { type = "nvidia-l4", count = 1 } }
  project_id            = local._project
  service_account_email = module.nodes.email
}

output "cluster" {
  value = module.gke_cluster.cluster
}

output "pool" {
  value = module.gke_nodepool.pool
}
