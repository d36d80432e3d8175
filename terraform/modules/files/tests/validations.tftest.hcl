mock_provider "google" {}

variables {
  marker = "aiinfra-cluster=3f9c2a71"
  files  = {}
  parts = {
    jobs = { role = "roles/storage.objectViewer" }
    vms  = { role = "roles/storage.objectUser", listed = true }
  }
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
  state_folder          = { bucket = "state", folder = "train-deployment" }
}

run "refuses_a_hash_that_is_none" {
  command = plan

  variables {
    files = { archive = "files.tar.gz", sha256 = "E3B0" }
  }

  expect_failures = [var.files]
}

run "refuses_an_archive_without_a_hash" {
  command = plan

  variables {
    files = { archive = "files.tar.gz" }
  }

  expect_failures = [var.files]
}

run "refuses_the_whole_folder_as_part" {
  command = plan

  variables {
    parts = { "" = { role = "roles/storage.objectUser" } }
  }

  expect_failures = [var.parts]
}

run "refuses_the_whole_bucket_as_folder" {
  command = plan

  variables {
    state_folder = { bucket = "state", folder = "" }
  }

  expect_failures = [var.state_folder]
}

run "accepts_a_folder_in_a_folder" {
  command = plan

  variables {
    state_folder = { bucket = "state", folder = "clusters/train-deployment" }
  }
}
