variable "files" {
  description = "The archive of files for every machine: its file, from the root folder, and its SHA-256 in hexadecimal digits; both null for none. Other content is another object."
  type        = object({ archive = optional(string), sha256 = optional(string) })
  default     = {}
  nullable    = false

  validation {
    condition     = (var.files.archive == null) == (var.files.sha256 == null)
    error_message = "An archive has both a file and a checksum; received ${jsonencode(var.files)}. {} would pass."
  }
  validation {
    condition     = var.files.sha256 == null ? true : can(regex("^[0-9a-f]{64}$", var.files.sha256))
    error_message = "A SHA-256 is 64 hexadecimal digits; received ${jsonencode(var.files.sha256)}. \"${sha256("")}\" would pass."
  }
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; null for none."
  type        = string
  default     = null
}

variable "parts" {
  description = "Parts of the deployment's folder -> the role that the account has there, and whether it lists them."
  type        = map(object({ role = string, listed = optional(bool, false) }))
  nullable    = false

  validation {
    condition     = alltrue([for part in keys(var.parts) : can(regex("^[a-z]+(/[a-z]+)*$", part))])
    error_message = "A part is a folder below the deployment's; received ${jsonencode(keys(var.parts))}. \"vms\" would pass."
  }
}

variable "service_account_email" {
  description = "The account that VMs or pods act as."
  type        = string
  nullable    = false
}

variable "state_folder" {
  description = "Bucket with uniform bucket-level access, and the deployment's folder in it, without slashes at its ends; null for no access."
  type        = object({ bucket = string, folder = string })
  default     = null

  # An empty folder would give access to every deployment of the bucket.
  validation {
    condition     = var.state_folder == null ? true : can(regex("^[^/]+(/[^/]+)*$", var.state_folder.folder))
    error_message = "A folder has a name, and no slashes at its ends; received ${jsonencode(var.state_folder)}. folder = \"train-deployment\" would pass."
  }
  validation {
    condition     = var.state_folder != null || var.files.archive == null
    error_message = "An archive travels by the deployment's folder; received ${jsonencode(var.files)} without one. files = {} would pass."
  }
}
