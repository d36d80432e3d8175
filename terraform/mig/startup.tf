locals {
  _startup = merge(var.startup, {
    interfaces      = length(local._interfaces)
    max_run_seconds = var.capacity.max_run_seconds
    idle_seconds    = var.capacity.idle_seconds
  })
  _secrets = [
    for secret in var.secrets : {
      name     = secret.name
      resource = "projects/${secret.project}/secrets/${secret.secret}/versions/${secret.version}"
    }
  ]
}

module "startup" {
  source = "../modules/startup"

  cluster_id   = local._cluster_id
  command      = var.startup_command
  files        = module.files.archive
  mounts       = concat(module.gcs_mounts.mounts, module.filestore.mounts)
  name_prefix  = var.name_prefix
  secrets      = local._secrets
  startup      = local._startup
  state_folder = var.state_folder
}

# The same with the names of file servers in place of their addresses, which a
# first plan does not know: what the template's name is made of.
module "startup_identity" {
  source = "../modules/startup"

  cluster_id   = local._cluster_id
  command      = var.startup_command
  files        = module.files.archive
  mounts       = concat(module.gcs_mounts.mounts, module.filestore.named_mounts)
  name_prefix  = var.name_prefix
  secrets      = local._secrets
  startup      = local._startup
  state_folder = var.state_folder
}
