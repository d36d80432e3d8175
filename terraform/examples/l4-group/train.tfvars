# A VM with an L4 in the network "default": values of the root terraform/mig, which has a default for all else.
project_id  = "my-project"
name_prefix = "train"
zone        = "us-central1-a"
group       = { machine_type = "g2-standard-8" }
startup     = { gpus = { count = 1, accelerator = "nvidia-l4" } }
