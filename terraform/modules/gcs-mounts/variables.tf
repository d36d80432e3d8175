variable "cluster_id" {
  description = "ID of the deployment, for the titles of conditions."
  type        = string
  nullable    = false
}

variable "gcs_mounts" {
  description = "Buckets that exist, and the path where VMs mount each; one bucket may be mounted at several paths; and whether it is read only, for which the account gets a role that reads alone. And how the account gets its role: `own` where nobody else gives this account that role, `conditional` by a binding of this deployment's beside others, `given` where somebody else gives it and none is made."
  type        = list(object({ bucket = string, path = string, grant = optional(string, "own"), read_only = optional(bool, false) }))
  nullable    = false

  validation {
    condition     = alltrue([for mount in var.gcs_mounts : contains(["own", "conditional", "given"], mount.grant)])
    error_message = "A grant is own, conditional or given; received ${jsonencode(var.gcs_mounts[*].grant)}. \"conditional\" would pass."
  }

  validation {
    condition     = alltrue([for mount in var.gcs_mounts : can(regex("^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$", mount.bucket))])
    error_message = "A bucket is a bare name of a-z, 0-9, ., _ and -; received ${jsonencode(var.gcs_mounts[*].bucket)}. \"my-data\" would pass."
  }
  validation {
    condition     = alltrue([for mount in var.gcs_mounts : can(regex("^(/[^/:,\\s]+)+$", mount.path))])
    error_message = "A bucket is mounted at an absolute path without blanks, colons and commas; received ${jsonencode(var.gcs_mounts[*].path)}. \"/mnt/data\" would pass."
  }
  validation {
    condition     = length(distinct(var.gcs_mounts[*].path)) == length(var.gcs_mounts)
    error_message = "Each mount has a path of its own; received ${jsonencode(var.gcs_mounts[*].path)}. ${jsonencode(distinct(var.gcs_mounts[*].path))} would pass."
  }
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default made of cluster_id."
  type        = string
  default     = null
}

variable "options" {
  description = "Options of gcsfuse for all mounts, as `name` or `name=value`. Every user of a VM may reach the mounts in any case."
  type        = list(string)
  default     = []
  nullable    = false

  # A field of fstab, with commas between.
  validation {
    condition     = alltrue([for option in var.options : can(regex("^[a-z][a-z-]*(=[^,\\s]+)?$", option))])
    error_message = "An option is a name, or a name and a value without commas and blanks; received ${jsonencode(var.options)}. \"dir-mode=755\" would pass."
  }
}

variable "service_account_email" {
  description = "The account that VMs act as."
  type        = string
  nullable    = false
}

variable "state_folder" {
  description = "Bucket and folder of the deployment's state, from which VMs are kept away also where that bucket is mounted; the folder without slashes at its ends; null where there is none."
  type        = object({ bucket = string, folder = string })
  default     = null
}
