locals {
  _member = "serviceAccount:${var.service_account_email}"

  # What the account may do in the deployment's folder, by its part. The state is in
  # none of them.
  _access = { for part, access in merge(
    var.files.archive == null ? {} : { files = { role = "roles/storage.objectViewer", listed = false } },
    var.parts,
  ) : part => access if var.state_folder != null }
  _folders = { for part in keys(local._access) : part => "${var.state_folder.folder}/${part}/" }
}

resource "google_storage_bucket_object" "files" {
  count = var.files.archive == null ? 0 : 1

  name         = "${var.state_folder.folder}/files/${var.files.sha256}.tar.gz"
  bucket       = var.state_folder.bucket
  source       = "${path.root}/${var.files.archive}"
  content_type = "application/gzip"
}

resource "google_storage_bucket_iam_member" "access" {
  for_each = local._access

  bucket = var.state_folder.bucket
  role   = each.value.role
  member = local._member

  condition {
    title       = "aiinfra ${each.key}"
    description = var.marker
    expression = join(" || ", concat(
      ["resource.name.startsWith(\"projects/_/buckets/${var.state_folder.bucket}/objects/${local._folders[each.key]}\")"],
      # A list is of the bucket, and not of an object: it is known by its prefix.
      each.value.listed ? ["api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"${local._folders[each.key]}\")"] : [],
    ))
  }
}
