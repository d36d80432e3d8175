cluster_id = "3f9c2a71"
marker     = "aiinfra-cluster=3f9c2a71"
filestores = [
  { path = "/mnt/b", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" },
  { path = "/mnt/a", tier = "ENTERPRISE", size_gb = 1024, location = "us-central1" },
]
labels      = { team = "ml" }
name_prefix = "train"
network     = "projects/my-project/global/networks/train-net"
project_id  = "my-project"
