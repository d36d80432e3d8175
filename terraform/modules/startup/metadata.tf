locals {
  # Everything that differs between clusters; the script is the same text for all.
  _config = {
    cluster_id  = var.cluster_id
    name_prefix = var.name_prefix
    state       = var.state_folder
    mounts      = var.mounts
    gpus        = var.startup.gpus
    interfaces  = var.startup.interfaces
    local_ssds  = var.startup.local_ssds
    ops_agent   = var.startup.ops_agent
    notebook    = var.startup.notebook
    ray         = var.startup.ray
    secrets     = length(var.secrets) == 0 ? null : var.secrets
    has_command = var.command != ""
    files = var.files.object == null ? null : {
      object      = var.files.object
      sha256      = var.files.sha256
      destination = var.startup.files_destination
    }
  }

  # Named by kind, so that what tests and editors leave behind does not travel.
  _payload_files = setunion(
    fileset("${path.module}/payload", "**/*.{md,service,txt,yaml}"),
    fileset("${path.module}/payload", "lib/aiinfra_vm/*.py"),
    fileset("${path.module}/payload", "samples/*.py"),
    fileset("${path.module}/payload", "steps/*.sh"),
  )
  _payload = { for name in local._payload_files : name => file("${path.module}/payload/${name}") }

  _metadata = merge(
    {
      aiinfra-config          = jsonencode(local._config)
      aiinfra-payload         = jsonencode(local._payload)
      enable-guest-attributes = "TRUE"
      startup-script          = file("${path.module}/startup.sh")
    },
    # Whoever may use the project's Compute Engine may use the notebook.
    var.startup.notebook ? { proxy-mode = "project_editors" } : {},
    var.command == "" ? {} : { aiinfra-startup-command = var.command },
  )
}
