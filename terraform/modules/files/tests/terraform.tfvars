marker = "aiinfra-cluster=3f9c2a71"
files  = { archive = "files.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
parts = {
  jobs = { role = "roles/storage.objectViewer" }
  vms  = { role = "roles/storage.objectUser", listed = true }
}
service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
state_folder          = { bucket = "state", folder = "clusters/train-deployment" }
