mock_provider "google" {}

run "vms_may_use_the_objects_of_exactly_these_buckets" {
  command = plan

  assert {
    condition     = [for role in google_storage_bucket_iam_member.mounts : role.bucket] == ["data", "models"]
    error_message = "Roles are granted on ${jsonencode([for role in google_storage_bucket_iam_member.mounts : role.bucket])}."
  }
  assert {
    condition     = alltrue([for role in google_storage_bucket_iam_member.mounts : role.role == "roles/storage.objectUser"])
    error_message = "The roles are ${jsonencode([for role in google_storage_bucket_iam_member.mounts : role.role])}."
  }
  assert {
    condition     = alltrue([for role in google_storage_bucket_iam_member.mounts : role.member == "serviceAccount:train-nodes@my-project.iam.gserviceaccount.com"])
    error_message = "The roles go to ${jsonencode([for role in google_storage_bucket_iam_member.mounts : role.member])}."
  }
  assert {
    condition     = alltrue([for role in google_storage_bucket_iam_member.mounts : length(role.condition) == 0])
    error_message = "A role has a condition."
  }
}

run "mounts_are_told_by_the_storage_contract_in_order" {
  command = plan

  variables {
    gcs_mounts = [{ bucket = "models", path = "/mnt/models" }, { bucket = "data", path = "/mnt/data" }]
  }

  assert {
    condition     = [for mount in output.mounts : "${mount.type} ${mount.server}:${mount.remote_path} ${mount.local_mount}"] == ["gcsfuse :models /mnt/models", "gcsfuse :data /mnt/data"]
    error_message = "The mounts are ${jsonencode(output.mounts)}."
  }
  assert {
    condition     = alltrue([for mount in output.mounts : mount.options == "allow_other,implicit-dirs,dir-mode=777"])
    error_message = "The options are ${jsonencode(output.mounts[*].options)}."
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
    condition     = google_storage_bucket_iam_member.mounts["state"].condition[0].expression == "!resource.name.startsWith(\"projects/_/buckets/state/objects/clusters/train-deployment/\")"
    error_message = "The condition is ${google_storage_bucket_iam_member.mounts["state"].condition[0].expression}."
  }
  assert {
    condition     = google_storage_bucket_iam_member.mounts["state"].condition[0].description == "aiinfra-cluster=3f9c2a71"
    error_message = "The condition is described as ${google_storage_bucket_iam_member.mounts["state"].condition[0].description}."
  }
  assert {
    condition     = length(google_storage_bucket_iam_member.mounts["data"].condition) == 0
    error_message = "Another bucket's role has a condition."
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
    condition     = keys(google_storage_bucket_iam_member.mounts) == ["data"]
    error_message = "Roles are granted on ${jsonencode(keys(google_storage_bucket_iam_member.mounts))}."
  }
  assert {
    condition     = google_storage_bucket_iam_member.mounts["data"].condition[0].title == "aiinfra mount 3f9c2a71"
    error_message = "The condition is ${jsonencode(google_storage_bucket_iam_member.mounts["data"].condition)}."
  }
  assert {
    condition     = google_storage_bucket_iam_member.mounts["data"].condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/data\")"
    error_message = "The condition is ${jsonencode(google_storage_bucket_iam_member.mounts["data"].condition)}."
  }
}
