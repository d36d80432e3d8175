cluster_id   = "3f9c2a71"
command      = null
files        = {}
mounts       = []
name_prefix  = "train"
secrets      = []
startup      = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true }
state_folder = { bucket = "my-bucket", folder = "train-deployment" }
