cluster               = { name = "train-gke", location = "us-central1", version = "1.35.7-gke.1222000", release_channel = "REGULAR" }
cluster_id            = "3f9c2a71"
hold_upgrades         = true
marker                = "aiinfra-cluster=3f9c2a71"
labels                = { team = "ml" }
name                  = "train-nodepool-1"
networks              = []
project_id            = "my-project"
region                = "us-central1"
service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
pool = {
  machine_type = "a3-ultragpu-8g"
  zone         = "us-central1-b"
  gpu          = { type = "nvidia-h200-141gb", count = 8, driver = "LATEST" }
  capacity     = { model = "flex_start_queued" }
  size         = { min = 0, max = 4 }
  disk         = { size_gb = 100, type = "hyperdisk-balanced" }
  local_ssds   = 32
  compact      = false
}
