mock_provider "google" {}

run "without_anything_set_up_the_vm_has_script_configuration_and_programs" {
  command = plan

  assert {
    condition     = join(",", keys(output.metadata)) == "aiinfra-config,aiinfra-payload,enable-guest-attributes,startup-script"
    error_message = "The keys are ${jsonencode(keys(output.metadata))}."
  }
  assert {
    condition     = output.metadata["enable-guest-attributes"] == "TRUE"
    error_message = "Without guest attributes nobody learns how far the VM is."
  }
  assert {
    condition = alltrue([
      output.metadata["startup-script"] == file("startup.sh"),
      jsondecode(output.metadata["aiinfra-config"]) == {
        cluster_id  = "3f9c2a71"
        name_prefix = "train"
        state       = { bucket = "my-bucket", folder = "train-deployment" }
        mounts      = []
        files       = null
        gpus        = null
        interfaces  = 1
        local_ssds  = 0
        fabric      = null
        ops_agent   = true
        node_ssh    = true
        notebook    = false
        ray         = null
        slurm       = null
        secrets     = null
        has_command = false
        restart     = "never"

        max_run_seconds = null
        stop_notice     = null
        os_updates      = true
        outbound        = null
        idle_seconds    = null
      },
    ])
    error_message = "It is ${jsonencode([output.metadata["startup-script"], output.metadata["aiinfra-config"]])}."
  }
  assert {
    condition = length(setsubtract([
      "lib/aiinfra_vm/gpu_health.py", "lib/aiinfra_vm/tasks/__init__.py", "ops-agent/config.yaml",
      "profile.d/aiinfra.sh", "samples/README.md", "samples/many_gpus.py",
      "steps/slurm.sh",
      "systemd/aiinfra-command.service",
    ], output.payload)) == 0 && !anytrue([for name in output.payload : strcontains(name, "ray_") || strcontains(name, "slurm_")])
    error_message = "The payload is ${jsonencode(output.payload)}."
  }
  # Compressed: 512 KiB of metadata have room for the user's keys and command beside it.
  assert {
    condition     = startswith(output.metadata["aiinfra-payload"], "H4sI")
    error_message = "The payload is no gzip in base64."
  }
  # It comes with every VM of every list that asks for metadata.
  assert {
    condition     = sum([for value in values(output.metadata) : length(value)]) < 159744
    error_message = "The metadata has ${sum([for value in values(output.metadata) : length(value)])} characters."
  }
}

run "what_is_set_up_is_in_the_configuration" {
  command = plan

  variables {
    files   = { object = "train-deployment/files/x.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    mounts  = [{ server = "", remote_path = "my-data", local_mount = "/mnt/data", type = "gcsfuse", options = "allow_other" }]
    startup = { files_destination = "/srv/my files", gpus = { count = 8, accelerator = "nvidia-h100-80gb" }, interfaces = 5, fabric = { kind = "tcpxo", interfaces = 8, plugin = "plugin:v1", daemon = "daemon:v1" }, notebook = true, ops_agent = false, ray = { version = "2.60.0" } }
  }

  assert {
    condition = alltrue([
      jsondecode(output.metadata["aiinfra-config"]).files == { object = "train-deployment/files/x.tar.gz", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", destination = "/srv/my files" },
      jsondecode(output.metadata["aiinfra-config"]).mounts[0].remote_path == "my-data",
      jsondecode(output.metadata["aiinfra-config"]).ray.version == "2.60.0",
      jsondecode(output.metadata["aiinfra-config"]).gpus.count == 8,
      jsondecode(output.metadata["aiinfra-config"]).fabric == { kind = "tcpxo", interfaces = 8, plugin = "plugin:v1", daemon = "daemon:v1" },
    ])
    error_message = "The configuration is ${output.metadata["aiinfra-config"]}."
  }
  assert {
    condition     = output.metadata["proxy-mode"] == "project_editors"
    error_message = "With a notebook there is a proxy."
  }
  assert {
    condition = length(setsubtract([
      "lib/aiinfra_vm/ray_node.py", "profile.d/aiinfra-ray.sh", "ray-2.60.0.txt", "systemd/aiinfra-ray.service",
    ], output.payload)) == 0
    error_message = "The payload is ${jsonencode(output.payload)}."
  }
}

run "a_command_travels_as_it_is" {
  command = plan

  variables {
    command = "echo \"$${HOME}\" '\"' 'é' %%{if}"
    startup = { files_destination = "/usr/aiinfra/copy", interfaces = 1, notebook = false, ops_agent = true, restart = "on-failure", max_run_seconds = 43200, stop_notice = 600, os_updates = false, idle_seconds = 7200 }
  }

  assert {
    condition     = output.metadata["aiinfra-startup-command"] == "echo \"$${HOME}\" '\"' 'é' %%{if}"
    error_message = "The command is ${output.metadata["aiinfra-startup-command"]}."
  }
  assert {
    condition     = jsondecode(output.metadata["aiinfra-config"]).has_command && jsondecode(output.metadata["aiinfra-config"]).restart == "on-failure" && jsondecode(output.metadata["aiinfra-config"]).max_run_seconds == 43200 && jsondecode(output.metadata["aiinfra-config"]).stop_notice == 600 && jsondecode(output.metadata["aiinfra-config"]).idle_seconds == 7200
    error_message = "The VM does not know of its command."
  }
}

run "slurms_partition_is_in_the_configuration_and_its_ports_are_those_of_the_payload" {
  command = plan

  variables {
    startup = { notebook = false, slurm = { partition = "a3-highgpu" } }
  }

  assert {
    condition     = jsondecode(output.metadata["aiinfra-config"]).slurm == { partition = "a3-highgpu" }
    error_message = "The configuration is ${output.metadata["aiinfra-config"]}."
  }
  assert {
    condition     = join(" ", output.slurm_ports) == "569 570 571 61000-63999"
    error_message = "The ports are ${jsonencode(output.slurm_ports)}."
  }
  assert {
    condition = length(setsubtract([
      "lib/aiinfra_vm/slurm_node.py", "slurm-ports.json", "systemd/aiinfra-slurm.service",
    ], output.payload)) == 0 && !contains(output.payload, "lib/aiinfra_vm/ray_node.py")
    error_message = "The payload is ${jsonencode(output.payload)}."
  }
  assert {
    condition     = sum([for value in values(output.metadata) : length(value)]) < 184320
    error_message = "The metadata has ${sum([for value in values(output.metadata) : length(value)])} characters."
  }
}

run "rays_ports_are_those_of_the_payload" {
  command = plan

  assert {
    condition = alltrue([
      contains(output.ray_ports, "20000-22999"),
      contains(output.ray_ports, "6379"),
      contains(output.ray_ports, "8265"),
      length(output.ray_ports) == length(jsondecode(file("./payload/ray-ports.json"))) - 1,
    ])
    error_message = "The ports are ${jsonencode(output.ray_ports)}."
  }
}
