marker                = "aiinfra-cluster=3f9c2a71"
name_prefix           = "train"
network               = "projects/my-project/global/networks/default"
ports                 = ["20000-22999", "6379", "8265"]
project_id            = "my-project"
service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
