output "archive" {
  description = "The archive in the bucket: object (its name) and sha256, known at plan; both null where there is none. It is there when this is ready, and VMs may read it."
  value = {
    object = one(google_storage_bucket_object.files[*].name)
    sha256 = var.files.sha256
  }
  depends_on = [google_storage_bucket_iam_member.access]
}
