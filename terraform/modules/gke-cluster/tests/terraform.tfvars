cluster = {
  location         = "us-central1"
  version          = null
  release_channel  = "REGULAR"
  authorized_cidrs = []
  ray_operator     = false
}
cluster_id             = "3f9c2a71"
marker                 = "aiinfra-cluster=3f9c2a71"
hold_node_upgrades     = false
labels                 = { team = "ml" }
multi_networking       = false
name_prefix            = "train"
network                = "projects/my-project/global/networks/train-net"
node_account_email     = "train-nodes@my-project.iam.gserviceaccount.com"
pods_range             = "pods"
project_id             = "my-project"
services_range         = "services"
subnetwork             = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet"
system_pool            = { machine_type = "e2-standard-4", min = 1, max = 3, disk_size_gb = 100, spot = true, zone = "us-central1-f" }
workload_account_email = "train-workload@my-project.iam.gserviceaccount.com"
