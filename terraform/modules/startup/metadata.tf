locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)

  # Everything that differs between clusters; the script is the same text for all.
  _config = {
    cluster_id  = local._cluster_id
    name_prefix = var.name_prefix
    state       = var.state_folder
    mounts      = var.mounts
    gpus        = var.startup.gpus
    interfaces  = var.startup.interfaces
    local_ssds  = var.startup.local_ssds
    fabric      = var.startup.fabric
    ops_agent   = var.startup.ops_agent
    node_ssh    = var.startup.node_ssh
    notebook    = var.startup.notebook
    ray         = var.startup.ray
    slurm       = var.startup.slurm
    secrets     = length(var.secrets) == 0 ? null : var.secrets
    has_command = var.command != null
    restart     = var.startup.restart
    # Google's API says when a VM ends, its metadata server does not.
    max_run_seconds = var.startup.max_run_seconds
    idle_seconds    = var.startup.idle_seconds
    stop_notice     = var.startup.stop_notice
    os_updates      = var.startup.os_updates
    outbound        = var.startup.outbound
    files = var.files.object == null ? null : {
      object      = var.files.object
      sha256      = var.files.sha256
      destination = var.startup.files_destination
    }
  }

  # The payload has them, as the VMs are what listens.
  _parts = { for word in ["ray", "slurm"] : word => jsondecode(file("${path.module}/payload/${word}-ports.json")) }
  _ports = {
    for word, parts in local._parts : word => sort(concat(
      [for name, port in parts : "${port}-${parts[replace(name, "first_", "last_")]}" if startswith(name, "first_")],
      [for name, port in parts : tostring(port) if !can(regex("^(first|last)_", name))],
    ))
  }

  # Named by kind, so that what tests and editors leave behind does not travel.
  _payload_files = setunion(
    fileset("${path.module}/payload", "**/*.{json,md,service,txt,yaml}"),
    fileset("${path.module}/payload", "lib/aiinfra_vm/**/*.py"),
    fileset("${path.module}/payload", "profile.d/*.sh"),
    fileset("${path.module}/payload", "samples/*.py"),
    fileset("${path.module}/payload", "steps/*.sh"),
  )
  # What is Ray's or Slurm's alone stays away from VMs that have the other, or neither.
  _left_out = [for word, part in { ray = var.startup.ray, slurm = var.startup.slurm } : word if part == null]
  _payload_texts = {
    for name in local._payload_files : name => file("${path.module}/payload/${name}")
    if !anytrue([for word in local._left_out : can(regex("(^|/)${word}[-_]|-${word}[.]", name))])
  }
  # Metadata has little room: programs travel without comments, but for those at the margin, and with
  # empty docstrings; the first pattern is a text that is a value, and stays ("" after it adds nothing).
  _docstring = "/(?m)(= r?f?\"\"\"[\\s\\S]*?\"\"\")|^( *)\"\"\"[\\s\\S]*?\"\"\"$/"
  _payload = {
    for name, text in local._payload_texts : name => startswith(name, "lib/") ? replace(
      replace(text, "/(?m)^ +# .*\n|  # .*$/", ""), local._docstring, "$1$2\"\""
    ) : text
  }

  _metadata = merge(
    {
      aiinfra-config          = jsonencode(local._config)
      aiinfra-payload         = base64gzip(jsonencode(local._payload))
      enable-guest-attributes = "TRUE"
      startup-script          = file("${path.module}/startup.sh")
    },
    # Whoever may use the project's Compute Engine may use the notebook.
    var.startup.notebook ? { proxy-mode = "project_editors" } : {},
    var.command == null ? {} : { aiinfra-startup-command = var.command },
  )
}
