cluster = {
  location         = "us-central1"
  version          = null
  release_channel  = "REGULAR"
  authorized_cidrs = []
  ray_operator     = false
}
cluster_id        = "3f9c2a71"
marker            = "aiinfra-cluster=3f9c2a71"
existing          = null
filestores        = []
secrets           = []
gcs_mounts        = []
gpu_networks      = []
ip_ranges         = { block = "10.0.0.0/12", first = "10.0.0.0/16" }
secondary_ranges  = { pods = "10.16.0.0/12", services = "10.32.0.0/20" }
more_gpu_networks = {}
labels            = { team = "ml" }
name_prefix       = "train"
node_pools        = {}
project_id        = "my-project"
range_names       = { pods = "pods", services = "services" }
region            = "us-central1"
service_account   = { create = true }
state_folder      = { bucket = "my-state", folder = "train-deployment" }
system_pool       = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = false, zone = "us-central1-a" }
zone              = "us-central1-a"
