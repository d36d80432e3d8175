locals {
  _member = "serviceAccount:${var.service_account_email}"

  # What VMs may do in the deployment's folder, by its part. The state is in none
  # of them.
  _access = merge(
    var.files.archive == null ? {} : { files = "roles/storage.objectViewer" },
    var.ray ? { ray = "roles/storage.objectUser" } : {},
    # What VMs run comes from where they can't write.
    { jobs = "roles/storage.objectViewer", vms = "roles/storage.objectUser" },
  )
  _folders = { for part in keys(local._access) : part => "${var.state_folder.folder}/${part}/" }

  # A list is of the bucket, and not of an object: it is known by its prefix. One VM lists what
  # the others have written; nobody needs a list of anything else.
  _listed = ["vms"]
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
  role   = each.value
  member = local._member

  condition {
    title       = "aiinfra ${each.key}"
    description = var.marker
    expression = join(" || ", concat(
      ["resource.name.startsWith(\"projects/_/buckets/${var.state_folder.bucket}/objects/${local._folders[each.key]}\")"],
      [for part in local._listed : "api.getAttribute(\"storage.googleapis.com/objectListPrefix\", \"\").startsWith(\"${local._folders[part]}\")" if part == each.key],
    ))
  }

  lifecycle {
    # Written once: a deployment of the first version, whose marker is older, keeps it
    # here, as another text would take the role away for a while.
    ignore_changes = [condition[0].description]
  }
}
