mock_provider "google" {}

variables {
  cluster_id   = "3f9c2a71"
  command      = ""
  files        = {}
  mounts       = []
  name_prefix  = "train"
  secrets      = []
  startup      = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true }
  state_folder = { bucket = "my-bucket", folder = "train-deployment" }
}

run "refuses_an_archive_without_its_checksum" {
  command = plan

  variables {
    files = { object = "train-deployment/files/x.tar.gz" }
  }

  expect_failures = [var.files]
}

run "refuses_a_checksum_that_is_none" {
  command = plan

  variables {
    files = { object = "train-deployment/files/x.tar.gz", sha256 = "E3B0" }
  }

  expect_failures = [var.files]
}

run "accepts_an_archive" {
  command = plan

  variables {
    files = { object = "train-deployment/files/x.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
  }
}

run "refuses_storage_of_an_unknown_type" {
  command = plan

  variables {
    mounts = [{ server = "", remote_path = "/share", local_mount = "/mnt/data", type = "cifs", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_nfs_without_a_server" {
  command = plan

  variables {
    mounts = [{ server = "", remote_path = "/share", local_mount = "/mnt/data", type = "nfs", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_gcsfuse_with_a_server" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/data", type = "gcsfuse", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_a_local_mount_that_is_no_absolute_path" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "mnt/data", type = "nfs", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_a_local_mount_of_two_lines" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt\n/data", type = "nfs", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_options_with_blanks" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/data", type = "nfs", options = "rw, hard" }]
  }

  expect_failures = [var.mounts]
}

run "refuses_a_local_mount_that_is_used_twice" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/data", type = "nfs", options = "rw,hard" }, { server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/data", type = "nfs", options = "rw,hard" }]
  }

  expect_failures = [var.mounts]
}

run "accepts_a_local_mount_with_a_blank" {
  command = plan

  variables {
    mounts = [{ server = "10.0.0.2", remote_path = "/share", local_mount = "/mnt/my data", type = "nfs", options = "rw,hard" }]
  }
}

run "accepts_the_longest_command" {
  command = plan

  variables {
    command = join("", [for index in range(1024) : format("é%0126d", index)])
  }
}

run "refuses_a_command_that_is_too_long" {
  command = plan

  variables {
    command = join("", concat(["x"], [for index in range(1024) : format("é%0126d", index)]))
  }

  expect_failures = [var.command]
}

run "refuses_a_relative_destination" {
  command = plan

  variables {
    startup = { files_destination = "copy", interfaces = 1, notebook = false, ops_agent = true }
  }

  expect_failures = [var.startup]
}

run "refuses_a_vm_without_interfaces" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 0, notebook = false, ops_agent = true }
  }

  expect_failures = [var.startup]
}

run "refuses_half_a_gpu" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true, gpus = { count = 0.5, accelerator = "nvidia-l4" } }
  }

  expect_failures = [var.startup]
}

run "refuses_a_fabric_that_vms_cannot_have" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 5, notebook = false, ops_agent = true, fabric = { kind = "tcpx", interfaces = 4, plugin = "plugin:v1" } }
  }

  expect_failures = [var.startup]
}

run "refuses_a_fabric_without_its_plugin" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 9, notebook = false, ops_agent = true, fabric = { kind = "tcpxo", interfaces = 8 } }
  }

  expect_failures = [var.startup]
}

run "refuses_a_version_of_ray_that_is_a_range" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true, ray = { version = ">=2" } }
  }

  expect_failures = [var.startup]
}

run "refuses_a_restart_that_is_unknown" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true, restart = "sometimes" }
  }

  expect_failures = [var.startup]
}

run "refuses_a_folder_that_begins_with_a_slash" {
  command = plan

  variables {
    state_folder = { bucket = "my-bucket", folder = "/train-deployment" }
  }

  expect_failures = [var.state_folder]
}

run "refuses_a_folder_that_ends_with_a_slash" {
  command = plan

  variables {
    state_folder = { bucket = "my-bucket", folder = "train-deployment/" }
  }

  expect_failures = [var.state_folder]
}

run "refuses_no_folder" {
  command = plan

  variables {
    state_folder = { bucket = "my-bucket", folder = "" }
  }

  expect_failures = [var.state_folder]
}

run "refuses_a_secret_without_its_version" {
  command = plan

  variables {
    secrets = [{ name = "TOKEN", resource = "projects/my-project/secrets/token" }]
  }

  expect_failures = [var.secrets]
}

run "refuses_half_a_local_ssd" {
  command = plan

  variables {
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 1, local_ssds = 0.5, notebook = false, ops_agent = true }
  }

  expect_failures = [var.startup]
}
