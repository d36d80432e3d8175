# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  files        = {}
  state_folder = { bucket = "state", folder = "train-deployment" }
}

refuses = {
  a_hash_that_is_none         = { files = { archive = "files.tar.gz", sha256 = "E3B0" } }
  an_archive_without_a_hash   = { files = { archive = "files.tar.gz" } }
  the_whole_folder_as_part    = { parts = { "" = { role = "roles/storage.objectUser" } } }
  an_archive_without_a_folder = { state_folder = null, files = { archive = "files.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" } }
  the_whole_bucket_as_folder  = { state_folder = { bucket = "state", folder = "" } }
}

accepts = {
  a_folder_in_a_folder = { state_folder = { bucket = "state", folder = "clusters/train-deployment" } }
}
