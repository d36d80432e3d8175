boot_disk       = { size_gb = 2000, type = "pd-ssd" }
capacity        = { model = "standard", compact = false }
cluster_id      = "3f9c2a71"
marker          = "aiinfra-cluster=3f9c2a71"
existing        = null
files           = {}
filestores      = []
gcs_mounts      = []
gcs_options     = []
gpu_networks    = []
ip_ranges       = { block = "10.0.0.0/12", first = "10.0.0.0/16" }
group           = { instance_count = 2, machine_type = "a2-highgpu-2g", external_ip = false }
image           = { project = "images", family = "pytorch" }
labels          = { team = "ml" }
metadata        = {}
name_prefix     = "train"
network_config  = "new_network"
project_id      = "my-project"
region          = "us-central1"
resize_requests = {}
secrets         = []
service_account = { create = true }
startup         = { files_destination = "/usr/aiinfra/copy", gpus = { count = 2, accelerator = "nvidia-tesla-a100" }, notebook = true, ops_agent = true }
startup_command = null
state_folder    = { bucket = "state", folder = "train-deployment" }
zone            = "us-central1-a"
