marker      = "aiinfra-cluster=3f9c2a71"
ip_block    = "10.0.0.0/12"
name_prefix = "train"
networks    = []
project_id  = "my-project"
region      = "us-central1"
zone        = "us-central1-b"
