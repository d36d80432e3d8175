mock_provider "google" {}

variables {
  cluster_id            = "3f9c2a71"
  marker                = "aiinfra-cluster=3f9c2a71"
  gcs_mounts            = []
  options               = ["implicit-dirs", "dir-mode=777"]
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  state_folder          = { bucket = "state", folder = "train-deployment" }
}

run "refuses_a_bucket_that_is_a_url" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "gs://data", path = "/mnt/data" }]
  }

  expect_failures = [var.gcs_mounts]
}

run "refuses_a_relative_path" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "mnt/data" }]
  }

  expect_failures = [var.gcs_mounts]
}

run "refuses_two_mounts_at_one_path" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "/mnt" }, { bucket = "models", path = "/mnt" }]
  }

  expect_failures = [var.gcs_mounts]
}

run "refuses_a_grant_that_there_is_not" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "/mnt/data", grant = "some" }]
  }

  expect_failures = [var.gcs_mounts]
}

run "accepts_one_bucket_at_two_paths" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "/mnt/a" }, { bucket = "data", path = "/mnt/b" }]
  }
}

run "refuses_options_that_would_be_two" {
  command = plan

  variables {
    options = ["dir-mode=755,uid=0"]
  }

  expect_failures = [var.options]
}
