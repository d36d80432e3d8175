locals {
  # Condition of the role, for the one bucket that needs one. A list is of the
  # bucket, not of an object, so it stays allowed and shows the folder's names.
  _conditions = {
    (var.state_folder.bucket) = "!resource.name.startsWith(\"projects/_/buckets/${var.state_folder.bucket}/objects/${var.state_folder.folder}/\")"
  }
}

# One for each bucket, as a role is of the bucket, not of a path.
resource "google_storage_bucket_iam_member" "mounts" {
  for_each = toset(var.gcs_mounts[*].bucket)

  bucket = each.value
  role   = "roles/storage.objectUser"
  member = "serviceAccount:${var.service_account_email}"

  dynamic "condition" {
    for_each = compact([lookup(local._conditions, each.value, "")])

    content {
      title       = "all but the state"
      description = var.marker
      expression  = condition.value
    }
  }

  lifecycle {
    # Written once: a deployment of the first version, whose marker is older, keeps it
    # here, as another text would take the role away for a while.
    ignore_changes = [condition[0].description]
  }
}
