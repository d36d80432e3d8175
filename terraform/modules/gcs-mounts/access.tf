locals {
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.cluster_id}")

  _grants = { for bucket, grants in { for mount in var.gcs_mounts : mount.bucket => mount.grant... } : bucket => grants[0] }
  # Of a bucket that is mounted twice, one mount may write.
  _roles = { for bucket, reads in { for mount in var.gcs_mounts : mount.bucket => mount.read_only... } : bucket => alltrue(reads) ? "roles/storage.objectViewer" : "roles/storage.objectUser" }

  # An account that is not the cluster's own may have the same role for another
  # deployment, or by hand: a condition makes a binding of this deployment's, which
  # goes without taking theirs.
  _shared = {
    for bucket, grant in local._grants : bucket => {
      title      = "aiinfra mount ${var.cluster_id}"
      expression = "resource.name.startsWith(\"projects/_/buckets/${bucket}\")"
    } if grant == "conditional"
  }
  # A list is of the bucket, not of an object, so it stays allowed and shows the
  # names of the state's folder.
  _conditions = merge(local._shared, {
    for state in var.state_folder[*] : state.bucket => {
      title      = "all but the state"
      expression = "!resource.name.startsWith(\"projects/_/buckets/${state.bucket}/objects/${state.folder}/\")"
    }
  })
}

# One for each bucket, as a role is of the bucket, not of a path.
resource "google_storage_bucket_iam_member" "mounts" {
  for_each = toset([for bucket, grant in local._grants : bucket if grant != "given"])

  bucket = each.value
  role   = local._roles[each.value]
  member = "serviceAccount:${var.service_account_email}"

  dynamic "condition" {
    for_each = [for bucket, condition in local._conditions : condition if bucket == each.value]

    content {
      title       = condition.value.title
      description = local._marker
      expression  = condition.value.expression
    }
  }

  lifecycle {
    # VMs that run keep their access while it becomes another binding.
    create_before_destroy = true
  }
}
