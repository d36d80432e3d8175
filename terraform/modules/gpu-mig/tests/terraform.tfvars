boot_disk             = { size_gb = 2000, type = "pd-ssd" }
capacity              = { model = "standard", compact = false }
cluster_id            = "3f9c2a71"
marker                = "aiinfra-cluster=3f9c2a71"
group                 = { instance_count = 2, machine_type = "a2-highgpu-2g", external_ip = false }
image                 = { project = "images", family = "pytorch" }
interfaces            = [{ nic_type = "GVNIC", subnetwork = "projects/my-project/regions/us-central1/subnetworks/train-primary-subnet" }]
labels                = {}
metadata              = { startup-script = "true" }
metadata_identity     = { startup-script = "true" }
name_prefix           = "train"
project_id            = "my-project"
region                = "us-central1"
resize_requests       = {}
service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
users_metadata        = {}
zone                  = "us-central1-a"
