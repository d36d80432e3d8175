# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  gcs_mounts   = []
  state_folder = { bucket = "state", folder = "train-deployment" }
}

refuses = {
  a_bucket_that_is_a_url    = { gcs_mounts = [{ bucket = "gs://data", path = "/mnt/data" }] }
  a_relative_path           = { gcs_mounts = [{ bucket = "data", path = "mnt/data" }] }
  two_mounts_at_one_path    = { gcs_mounts = [{ bucket = "data", path = "/mnt" }, { bucket = "models", path = "/mnt" }] }
  a_grant_that_there_is_not = { gcs_mounts = [{ bucket = "data", path = "/mnt/data", grant = "some" }] }
  options_that_would_be_two = { options = ["dir-mode=755,uid=0"] }
}

accepts = {
  one_bucket_at_two_paths = { gcs_mounts = [{ bucket = "data", path = "/mnt/a" }, { bucket = "data", path = "/mnt/b" }] }
}
