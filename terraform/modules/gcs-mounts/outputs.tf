output "mounts" {
  description = "The buckets as a list of the storage contract: server (none), remote_path (the bucket), local_mount, type and options, in order of `gcs_mounts`; known at plan. The VMs have access when this is ready."
  value = [
    for mount in var.gcs_mounts : {
      server      = ""
      remote_path = mount.bucket
      local_mount = mount.path
      type        = "gcsfuse"
      # Not root alone, which mounts it.
      options = join(",", distinct(concat(["allow_other"], mount.read_only ? ["ro"] : [], var.options)))
    }
  ]
  depends_on = [google_storage_bucket_iam_member.mounts]
}
