variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`: label and description of every instance; by default name_prefix."
  type        = string
  default     = null
}

variable "filestores" {
  description = "The shares to make: the path where VMs mount it, tier, size in GiB, and location: a region for the tiers ENTERPRISE and REGIONAL, else a zone; and the key of Cloud KMS that encrypts it, which counts for a new share alone. Another size grows a share in place; another path, tier or location is another share, and the old one is deleted with all that is on it."
  type        = list(object({ path = string, tier = string, size_gb = number, location = string, kms_key = optional(string) }))
  nullable    = false

  validation {
    condition     = alltrue([for share in var.filestores : can(regex("^(/[^/:,\\s]+)+$", share.path))])
    error_message = "A share is mounted at an absolute path without blanks, colons and commas; received ${jsonencode(var.filestores[*].path)}. \"/mnt/share\" would pass."
  }
  validation {
    condition     = length(distinct(var.filestores[*].path)) == length(var.filestores)
    error_message = "Each share has a path of its own; received ${jsonencode(var.filestores[*].path)}. ${jsonencode(distinct(var.filestores[*].path))} would pass."
  }
  validation {
    condition     = alltrue([for share in var.filestores : contains(["BASIC_HDD", "BASIC_SSD", "ENTERPRISE", "HIGH_SCALE_SSD", "REGIONAL", "ZONAL"], share.tier)])
    error_message = "A tier is BASIC_HDD, BASIC_SSD, ENTERPRISE, HIGH_SCALE_SSD, REGIONAL or ZONAL; received ${jsonencode(var.filestores[*].tier)}. \"BASIC_SSD\" would pass."
  }
  # What else a size must be depends on the tier and is Google's to refuse.
  validation {
    condition     = alltrue([for share in var.filestores : share.size_gb >= 1024 && floor(share.size_gb) == share.size_gb])
    error_message = "A share has a whole number of GiB, 1024 or more; received ${jsonencode(var.filestores[*].size_gb)}. 2560 would pass."
  }
  validation {
    condition = alltrue([
      for share in var.filestores : can(regex("^[a-z]+-[a-z]+[0-9]+$", share.location)) == contains(["ENTERPRISE", "REGIONAL"], share.tier)
    ])
    error_message = "The tiers ENTERPRISE and REGIONAL are in a region, the others in a zone; received ${jsonencode([for share in var.filestores : "${share.tier} in ${share.location}"])}. \"ENTERPRISE in us-central1\" and \"BASIC_SSD in us-central1-a\" would pass."
  }
}

variable "labels" {
  description = "Labels of the instances beside the marker, which wins."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default made of cluster_id."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "Start of every name that is made."
  type        = string
  nullable    = false
}

variable "network" {
  description = "The VMs' network, as projects/P/global/networks/N; a change replaces the shares."
  type        = string
  nullable    = false
}

variable "project_id" {
  description = "Project of the instances."
  type        = string
  nullable    = false
}
