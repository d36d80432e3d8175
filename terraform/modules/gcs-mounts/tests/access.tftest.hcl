mock_provider "google" {}

run "vms_may_use_the_objects_of_exactly_these_buckets" {
  command = plan

  assert {
    condition = alltrue([
      [for role in google_storage_bucket_iam_member.mounts : role.bucket] == ["data", "models"],
      alltrue([for role in google_storage_bucket_iam_member.mounts : role.role == "roles/storage.objectUser"]),
      alltrue([for role in google_storage_bucket_iam_member.mounts : role.member == "serviceAccount:train-nodes@my-project.iam.gserviceaccount.com"]),
      alltrue([for role in google_storage_bucket_iam_member.mounts : length(role.condition) == 0]),
    ])
    error_message = "It is ${jsonencode([[for role in google_storage_bucket_iam_member.mounts : role.bucket], [for role in google_storage_bucket_iam_member.mounts : role.role], [for role in google_storage_bucket_iam_member.mounts : role.member], google_storage_bucket_iam_member.mounts])}."
  }
}

run "without_a_state_no_bucket_hides_one" {
  command = plan

  variables {
    gcs_mounts   = [{ bucket = "state", path = "/mnt/state" }]
    state_folder = null
  }

  assert {
    condition     = alltrue([for role in google_storage_bucket_iam_member.mounts : length(role.condition) == 0])
    error_message = "It is ${jsonencode(google_storage_bucket_iam_member.mounts)}."
  }
}

run "mounts_are_told_by_the_storage_contract_in_order" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "models", path = "/mnt/models" }, { bucket = "data", path = "/mnt/data" }]
  }

  assert {
    condition = alltrue([
      [for mount in output.mounts : "${mount.type} ${mount.server}:${mount.remote_path} ${mount.local_mount}"] == ["gcsfuse :models /mnt/models", "gcsfuse :data /mnt/data"],
      alltrue([for mount in output.mounts : mount.options == "allow_other,implicit-dirs,dir-mode=777"]),
    ])
    error_message = "It is ${jsonencode(output.mounts)}."
  }
}

run "a_bucket_that_is_read_only_is_mounted_so_by_an_account_that_can_only_read" {
  command = plan

  variables {
    gcs_mounts = [
      { bucket = "data", path = "/mnt/data", read_only = true },
      { bucket = "models", path = "/mnt/models", read_only = true },
      { bucket = "models", path = "/mnt/new" },
    ]
    options = ["dir-mode=777", "ro"]
  }

  assert {
    condition = alltrue([
      { for bucket, role in google_storage_bucket_iam_member.mounts : bucket => role.role } == { data = "roles/storage.objectViewer", models = "roles/storage.objectUser" },
      output.mounts[0].options == "allow_other,ro,dir-mode=777",
    ])
    error_message = "It is ${jsonencode([google_storage_bucket_iam_member.mounts, output.mounts])}."
  }
}

run "a_bucket_that_is_mounted_twice_has_one_role" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "/mnt/a" }, { bucket = "data", path = "/mnt/b" }]
  }

  assert {
    condition     = length(google_storage_bucket_iam_member.mounts) == 1 && length(output.mounts) == 2
    error_message = "Roles: ${length(google_storage_bucket_iam_member.mounts)}, mounts: ${length(output.mounts)}."
  }
}

run "the_states_bucket_is_mounted_without_access_to_the_state" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "data", path = "/mnt/data" }, { bucket = "state", path = "/mnt/state" }]
  }

  assert {
    condition = alltrue([
      google_storage_bucket_iam_member.mounts["state"].condition[0].expression == "!resource.name.startsWith(\"projects/_/buckets/state/objects/clusters/train-deployment/\")",
      google_storage_bucket_iam_member.mounts["state"].condition[0].description == "aiinfra-cluster=3f9c2a71",
      length(google_storage_bucket_iam_member.mounts["data"].condition) == 0,
    ])
    error_message = "It is ${jsonencode([google_storage_bucket_iam_member.mounts["state"].condition[0].expression, google_storage_bucket_iam_member.mounts["state"].condition[0].description, google_storage_bucket_iam_member.mounts["data"].condition])}."
  }
}

run "an_account_that_others_use_too_has_a_binding_of_this_deployments" {
  command = plan

  variables {
    gcs_mounts = [
      { bucket = "data", path = "/mnt/data", grant = "conditional" },
      { bucket = "models", path = "/mnt/models", grant = "given" },
    ]
  }

  assert {
    condition = alltrue([
      keys(google_storage_bucket_iam_member.mounts) == ["data"],
      google_storage_bucket_iam_member.mounts["data"].condition[0].title == "aiinfra mount 3f9c2a71",
      google_storage_bucket_iam_member.mounts["data"].condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/data\")",
    ])
    error_message = "It is ${jsonencode([keys(google_storage_bucket_iam_member.mounts), google_storage_bucket_iam_member.mounts["data"].condition])}."
  }
}
