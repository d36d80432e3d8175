variable "cluster" {
  description = "The control plane: region, full version (null: the channel's default at creation), release channel, networks that may reach it by IP ([]: no IP endpoint), whether GKE's Ray operator runs on it, the weekly window in which GKE may upgrade it and its nodes (null: nodes when asked), and the key of Cloud KMS for Kubernetes' secrets and the disks of system nodes (null: Google's own)."
  type = object({
    location         = string
    version          = optional(string)
    release_channel  = optional(string, "REGULAR")
    authorized_cidrs = optional(list(string), [])
    ray_operator     = optional(bool, false)
    kms_key          = optional(string)
    maintenance      = optional(object({ recurrence = string, start_time = string, end_time = string }))
  })
  nullable = false

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.cluster.location))
    error_message = "A cluster is in a region; received \"${var.cluster.location}\". \"us-central1\" would pass."
  }
  # The API takes a prefix and answers with a full version, which would differ for ever.
  validation {
    condition     = var.cluster.version == null ? true : can(regex("^1\\.[0-9]+\\.[0-9]+-gke\\.[0-9]+$", var.cluster.version))
    error_message = "A version is full, or null for the channel's default; received ${jsonencode(var.cluster.version)}. \"1.35.7-gke.1222000\" would pass."
  }
  validation {
    condition     = contains(["EXTENDED", "RAPID", "REGULAR", "STABLE", "UNSPECIFIED"], var.cluster.release_channel)
    error_message = "A release channel is RAPID, REGULAR, STABLE, EXTENDED or UNSPECIFIED; received \"${var.cluster.release_channel}\". \"REGULAR\" would pass."
  }
  validation {
    condition     = alltrue([for range in var.cluster.authorized_cidrs : can(cidrnetmask(range)) ? cidrhost(range, 0) == split("/", range)[0] : false])
    error_message = "An authorized network is an IPv4 network address with its prefix length; received ${jsonencode(var.cluster.authorized_cidrs)}. \"203.0.113.0/24\" would pass."
  }
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, a label of cluster and nodes; by default name_prefix. A change replaces the cluster."
  type        = string
  default     = null
}

variable "hold_node_upgrades" {
  description = "Whether GKE leaves minor versions and nodes alone until the version's end of support: an upgrade of nodes would end the jobs on them."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.hold_node_upgrades || var.cluster.release_channel != "UNSPECIFIED"
    error_message = "Google takes the exclusion only on a release channel; received true with \"${var.cluster.release_channel}\". false would pass, or the channel \"REGULAR\"."
  }
}

variable "labels" {
  description = "The user's labels for cluster and system nodes; the marker is added."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default made of cluster_id."
  type        = string
  default     = null
}

variable "multi_networking" {
  description = "Whether pods may use the nodes' interfaces after the first. Google turns it on when a cluster is made, and never later; a change is not seen."
  type        = bool
  default     = false
  nullable    = false
}

variable "name_prefix" {
  description = "Start of every name that is made."
  type        = string
  nullable    = false
}

variable "network" {
  description = "The network of the nodes' first interface, as projects/P/global/networks/N."
  type        = string
  nullable    = false
}

variable "node_account_email" {
  description = "The account that the nodes act as. A change replaces the system pool."
  type        = string
  nullable    = false
}

variable "pods_range" {
  description = "Name of the subnetwork's range for pods; each node takes twice its most pods of it, 256 addresses by default."
  type        = string
  default     = "pods"
  nullable    = false
}

variable "project_id" {
  description = "Project of the cluster."
  type        = string
  nullable    = false
}

variable "services_range" {
  description = "Name of the subnetwork's range for services."
  type        = string
  default     = "services"
  nullable    = false
}

variable "subnetwork" {
  description = "The subnetwork of the nodes' first interface, as projects/P/regions/R/subnetworks/S."
  type        = string
  nullable    = false
}

variable "system_pool" {
  description = "The pool for system pods, neither flex start nor queued: machine type, limits of scaling, GiB of boot disk, whether on spot machines, zone."
  type = object({
    machine_type = optional(string, "e2-standard-4")
    min          = optional(number, 1)
    max          = optional(number, 3)
    disk_size_gb = optional(number, 100)
    max_pods     = optional(number)
    spot         = optional(bool, false)
    zone         = string
  })
  nullable = false

  # Without a node for system pods no job is ever admitted.
  validation {
    condition     = var.system_pool.min >= 1 && var.system_pool.min <= var.system_pool.max && floor(var.system_pool.min) == var.system_pool.min && floor(var.system_pool.max) == var.system_pool.max
    error_message = "A system pool keeps 1 node or more, and its min is at most its max; received ${jsonencode(var.system_pool)}. min = 1, max = 3 would pass."
  }
  validation {
    condition     = var.system_pool.disk_size_gb >= 10 && var.system_pool.disk_size_gb <= 65536 && floor(var.system_pool.disk_size_gb) == var.system_pool.disk_size_gb
    error_message = "A boot disk has a whole number of GiB from 10 to 65536; received ${var.system_pool.disk_size_gb}. 100 would pass."
  }
  validation {
    condition     = startswith(var.system_pool.zone, "${var.cluster.location}-")
    error_message = "The system pool is in one zone of the cluster's region; received \"${var.system_pool.zone}\" with \"${var.cluster.location}\". \"${var.cluster.location}-a\" would pass."
  }
}

variable "workload_account_email" {
  description = "The account that pods of the Kubernetes account of the same name, in the namespace default, act as."
  type        = string
  nullable    = false
}
