mock_provider "google" {}

run "the_archive_is_one_object_named_by_its_content_and_vms_may_read_it" {
  command = plan

  assert {
    condition = alltrue([
      google_storage_bucket_object.files[0].name == "clusters/train-deployment/files/${var.files.sha256}.tar.gz",
      google_storage_bucket_object.files[0].bucket == "state",
      basename(google_storage_bucket_object.files[0].source) == "files.tar.gz",
    ])
    error_message = "It is ${jsonencode([google_storage_bucket_object.files[0].name, google_storage_bucket_object.files[0].bucket, google_storage_bucket_object.files[0].source])}."
  }
  assert {
    condition     = jsonencode(output.archive) == jsonencode({ object = google_storage_bucket_object.files[0].name, sha256 = var.files.sha256 })
    error_message = "The archive is ${jsonencode(output.archive)}."
  }
  assert {
    condition = alltrue([
      { for part, role in google_storage_bucket_iam_member.access : part => role.role } == { files = "roles/storage.objectViewer", jobs = "roles/storage.objectViewer", vms = "roles/storage.objectUser" },
      google_storage_bucket_iam_member.access["files"].condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/state/objects/clusters/train-deployment/files/\")",
      google_storage_bucket_iam_member.access["files"].condition[0].description == "aiinfra-cluster=3f9c2a71",
    ])
    error_message = "It is ${jsonencode([{ for part, role in google_storage_bucket_iam_member.access : part => role.role }, google_storage_bucket_iam_member.access["files"].condition[0].expression, google_storage_bucket_iam_member.access["files"].condition[0].description])}."
  }
}

run "without_files_there_is_no_object_and_vms_share_a_folder_that_they_list" {
  command = plan

  variables {
    files = {}
  }

  assert {
    condition     = length(google_storage_bucket_object.files) == 0 && join(" ", keys(google_storage_bucket_iam_member.access)) == "jobs vms"
    error_message = "The roles are ${jsonencode({ for part, role in google_storage_bucket_iam_member.access : part => role.role })}."
  }
  assert {
    condition = alltrue([
      google_storage_bucket_iam_member.access["vms"].role == "roles/storage.objectUser",
      google_storage_bucket_iam_member.access["vms"].condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/state/objects/clusters/train-deployment/vms/\") || api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"clusters/train-deployment/vms/\")",
    ])
    error_message = "It is ${jsonencode([google_storage_bucket_iam_member.access["vms"].role, google_storage_bucket_iam_member.access["vms"].condition[0].expression])}."
  }
  assert {
    condition     = output.archive.object == null && output.archive.sha256 == null
    error_message = "The archive is ${jsonencode(output.archive)}."
  }
}

run "a_part_may_be_a_folder_in_a_folder_and_nothing_beside_it" {
  command = plan

  variables {
    files = {}
    parts = {
      "jobs/files" = { role = "roles/storage.objectViewer" }
    }
  }

  assert {
    condition = alltrue([
      { for part, role in google_storage_bucket_iam_member.access : part => role.role } == { "jobs/files" = "roles/storage.objectViewer" },
      google_storage_bucket_iam_member.access["jobs/files"].condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/state/objects/clusters/train-deployment/jobs/files/\")",
    ])
    error_message = "It is ${jsonencode([{ for part, role in google_storage_bucket_iam_member.access : part => role.role }, google_storage_bucket_iam_member.access["jobs/files"].condition[0].expression])}."
  }
}

run "without_a_folder_nobody_gets_access_to_one" {
  command = plan

  variables {
    files        = {}
    state_folder = null
  }

  assert {
    condition     = length(google_storage_bucket_iam_member.access) == 0 && jsonencode(output.archive) == jsonencode({ object = null, sha256 = null })
    error_message = "It is ${jsonencode([google_storage_bucket_iam_member.access, output.archive])}."
  }
}
