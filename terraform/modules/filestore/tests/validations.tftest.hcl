mock_provider "google" {}

variables {
  cluster_id  = "3f9c2a71"
  marker      = "aiinfra-cluster=3f9c2a71"
  filestores  = []
  labels      = {}
  name_prefix = "train"
  network     = "projects/my-project/global/networks/train-net"
  project_id  = "my-project"
}

run "refuses_a_relative_path" {
  command = plan

  variables {
    filestores = [{ path = "mnt", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" }]
  }

  expect_failures = [var.filestores]
}

run "refuses_two_shares_at_one_path" {
  command = plan

  variables {
    filestores = [
      { path = "/mnt", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" },
      { path = "/mnt", tier = "BASIC_HDD", size_gb = 2560, location = "us-central1-a" },
    ]
  }

  expect_failures = [var.filestores]
}

run "refuses_an_unknown_tier" {
  command = plan

  variables {
    filestores = [{ path = "/mnt", tier = "PREMIUM", size_gb = 2560, location = "us-central1-a" }]
  }

  expect_failures = [var.filestores]
}

run "refuses_a_size_that_no_tier_has" {
  command = plan

  variables {
    filestores = [{ path = "/mnt", tier = "BASIC_HDD", size_gb = 1000, location = "us-central1-a" }]
  }

  expect_failures = [var.filestores]
}

run "refuses_a_basic_share_in_a_region" {
  command = plan

  variables {
    filestores = [{ path = "/mnt", tier = "BASIC_HDD", size_gb = 1024, location = "us-central1" }]
  }

  expect_failures = [var.filestores]
}

run "refuses_an_enterprise_share_in_a_zone" {
  command = plan

  variables {
    filestores = [{ path = "/mnt", tier = "ENTERPRISE", size_gb = 1024, location = "us-central1-a" }]
  }

  expect_failures = [var.filestores]
}

run "accepts_shares_in_a_zone_and_in_a_region" {
  command = plan

  variables {
    filestores = [
      { path = "/mnt/a", tier = "ENTERPRISE", size_gb = 1024, location = "us-central1" },
      { path = "/mnt/b", tier = "ZONAL", size_gb = 1024, location = "us-central1-ai1a" },
    ]
  }
}
