cluster_id            = "3f9c2a71"
marker                = "aiinfra-cluster=3f9c2a71"
gcs_mounts            = [{ bucket = "data", path = "/mnt/data" }, { bucket = "models", path = "/mnt/models" }]
options               = ["implicit-dirs", "dir-mode=777"]
service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
state_folder          = { bucket = "state", folder = "clusters/train-deployment" }
