output "mounts" {
  description = "The buckets as a list of the storage contract: server (none), remote_path (the bucket), local_mount, type and options, in order of `gcs_mounts`; known at plan. The VMs have access when this is ready."
  value = [
    for mount in var.gcs_mounts : {
      server      = ""
      remote_path = mount.bucket
      local_mount = mount.path
      type        = "gcsfuse"
      # Every user of a VM reads and writes; folders that only other tools made
      # objects in are seen too.
      options = "allow_other,implicit_dirs,dir_mode=777,file_mode=777"
    }
  ]
  depends_on = [google_storage_bucket_iam_member.mounts]
}
