# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  mount = { server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/data", type = "nfs", options = "rw,hard" }
}

refuses = {
  an_archive_without_its_checksum        = { files = { object = "train-deployment/files/x.tar.gz" } }
  a_checksum_that_is_none                = { files = { object = "train-deployment/files/x.tar.gz", sha256 = "E3B0" } }
  storage_of_an_unknown_type             = { mounts = [merge(var.mount, { server = "", type = "cifs" })] }
  nfs_without_a_server                   = { mounts = [merge(var.mount, { server = "" })] }
  gcsfuse_with_a_server                  = { mounts = [merge(var.mount, { type = "gcsfuse" })] }
  a_local_mount_that_is_no_absolute_path = { mounts = [merge(var.mount, { local_mount = "mnt/data" })] }
  a_local_mount_of_two_lines             = { mounts = [merge(var.mount, { local_mount = "/mnt\n/data" })] }
  options_with_blanks                    = { mounts = [merge(var.mount, { options = "rw, hard" })] }
  a_local_mount_that_is_used_twice       = { mounts = [var.mount, var.mount] }
  a_command_that_is_too_long             = { command = join("", concat(["x"], [for index in range(1024) : format("é%0126d", index)])) }
  a_relative_destination                 = { startup = merge(var.startup, { files_destination = "copy" }) }
  a_vm_without_interfaces                = { startup = merge(var.startup, { interfaces = 0 }) }
  half_a_gpu                             = { startup = merge(var.startup, { gpus = { count = 0.5, accelerator = "nvidia-l4" } }) }
  a_fabric_that_vms_cannot_have          = { startup = merge(var.startup, { interfaces = 5, fabric = { kind = "tcpx", interfaces = 4, plugin = "plugin:v1" } }) }
  a_fabric_without_its_plugin            = { startup = merge(var.startup, { interfaces = 9, fabric = { kind = "tcpxo", interfaces = 8 } }) }
  a_version_of_ray_that_is_a_range       = { startup = merge(var.startup, { ray = { version = ">=2" } }) }
  a_partition_that_is_there_already      = { startup = merge(var.startup, { slurm = { partition = "all" } }) }
  slurm_beside_ray                       = { startup = merge(var.startup, { ray = { version = "2.60.0" }, slurm = { partition = "g2" } }) }
  slurm_without_a_folder                 = { state_folder = null, startup = merge(var.startup, { slurm = { partition = "g2" } }) }
  a_restart_that_is_unknown              = { startup = merge(var.startup, { restart = "sometimes" }) }
  a_folder_that_begins_with_a_slash      = { state_folder = { bucket = "my-bucket", folder = "/train-deployment" } }
  a_folder_that_ends_with_a_slash        = { state_folder = { bucket = "my-bucket", folder = "train-deployment/" } }
  ray_without_a_folder                   = { state_folder = null, startup = merge(var.startup, { ray = { version = "2.60.0" } }) }
  no_folder                              = { state_folder = { bucket = "my-bucket", folder = "" } }
  a_secret_without_its_version           = { secrets = [{ name = "TOKEN", resource = "projects/my-project/secrets/token" }] }
  half_a_local_ssd                       = { startup = merge(var.startup, { local_ssds = 0.5 }) }
}

accepts = {
  an_archive                 = { files = { object = "train-deployment/files/x.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" } }
  a_local_mount_with_a_blank = { mounts = [merge(var.mount, { local_mount = "/mnt/my data" })] }
  the_longest_command        = { command = join("", [for index in range(1024) : format("é%0126d", index)]) }
}
