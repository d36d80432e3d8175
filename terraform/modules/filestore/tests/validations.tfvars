# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  share      = { path = "/mnt", tier = "BASIC_HDD", size_gb = 1024, location = "us-central1-a" }
  filestores = []
  labels     = {}
}

refuses = {
  a_relative_path               = { filestores = [merge(var.share, { path = "mnt" })] }
  two_shares_at_one_path        = { filestores = [var.share, merge(var.share, { size_gb = 2560 })] }
  an_unknown_tier               = { filestores = [merge(var.share, { tier = "PREMIUM", size_gb = 2560 })] }
  a_size_that_no_tier_has       = { filestores = [merge(var.share, { size_gb = 1000 })] }
  a_basic_share_in_a_region     = { filestores = [merge(var.share, { location = "us-central1" })] }
  an_enterprise_share_in_a_zone = { filestores = [merge(var.share, { tier = "ENTERPRISE" })] }
}

accepts = {
  shares_in_a_zone_and_in_a_region = { filestores = [{ path = "/mnt/a", tier = "ENTERPRISE", size_gb = 1024, location = "us-central1" }, { path = "/mnt/b", tier = "ZONAL", size_gb = 1024, location = "us-central1-ai1a" }] }
}
