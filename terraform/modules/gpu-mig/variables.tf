variable "boot_disk" {
  description = "Boot disk of each VM: size in GiB, at least the image's, type, and the key of Cloud KMS that encrypts it, without a version; null for Google's own."
  type = object({
    size_gb = optional(number, 2000)
    type    = optional(string, "pd-ssd")
    kms_key = optional(string)
  })
  default  = {}
  nullable = false
}

variable "capacity" {
  description = "Where VMs come from: model standard, spot, reservation or reservation_bound (then its name, and its own placement policies) or flex_start; after how many seconds Google deletes each (flex_start: needed); after how many without work they power themselves off, and so are not made again when they fail; whether they stand close together, or their group keeps the workload policy of VMs that do; and the accelerator topology that they are parts of."
  type = object({
    model           = optional(string, "standard")
    reservation     = optional(string)
    max_run_seconds = optional(number)
    idle_seconds    = optional(number)
    compact         = optional(bool, false)
    keeps_policy    = optional(bool, false)
    policies        = optional(list(string), [])
    topology        = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["flex_start", "reservation", "reservation_bound", "spot", "standard"], var.capacity.model)
    error_message = "Capacity is of the model standard, spot, reservation, reservation_bound or flex_start; received \"${var.capacity.model}\". \"standard\" would pass."
  }
  validation {
    condition     = startswith(var.capacity.model, "reservation") == (var.capacity.reservation != null)
    error_message = "A reservation is named with the models reservation and reservation_bound and with no other; received ${jsonencode(var.capacity)}. model = \"reservation\" with reservation = \"my-reservation\" would pass."
  }
  validation {
    condition     = var.capacity.model != "flex_start" || var.capacity.max_run_seconds != null
    error_message = "Flex start gives VMs for a limited time; received max_run_seconds = null. 604800 would pass."
  }
  validation {
    condition     = var.capacity.max_run_seconds == null ? true : var.capacity.max_run_seconds >= 600 && var.capacity.max_run_seconds <= 604800 && floor(var.capacity.max_run_seconds) == var.capacity.max_run_seconds
    error_message = "VMs run for 10 minutes to 7 days, in whole seconds; received ${jsonencode(var.capacity.max_run_seconds)}. 604800 would pass."
  }
  validation {
    condition     = var.capacity.idle_seconds == null ? true : var.capacity.idle_seconds >= 600 && var.capacity.model != "flex_start"
    error_message = "VMs power themselves off after 10 minutes without work or more, and never those of flex start; received ${jsonencode(var.capacity)}. idle_seconds = 7200 with model = \"standard\" would pass."
  }
  validation {
    condition     = var.capacity.model != "reservation_bound" || var.capacity.max_run_seconds == null
    error_message = "VMs that are bound to their reservation end with it; received ${jsonencode(var.capacity)}. max_run_seconds = null would pass."
  }
  validation {
    condition     = length(var.capacity.policies) == 0 || (startswith(var.capacity.model, "reservation") && !var.capacity.compact && !var.capacity.keeps_policy && var.capacity.topology == null)
    error_message = "The policies of a reservation go with it alone, and with no other placement; received ${jsonencode(var.capacity)}. policies = [] would pass."
  }
  validation {
    condition     = !var.capacity.compact || var.capacity.model != "flex_start" || can(regex("^(a3-ultragpu-|a4-|h4d-)", var.group.machine_type))
    error_message = "With flex start only A3 Ultra, A4 and H4D stand close together; received compact = true with \"${var.group.machine_type}\". compact = false would pass."
  }
  validation {
    condition     = var.capacity.model != "flex_start" || !startswith(var.group.machine_type, "a4x-")
    error_message = "Flex start has all GPU machine types but A4X; received \"${var.group.machine_type}\". \"a4-highgpu-8g\" would pass, or the model \"reservation\"."
  }
  validation {
    condition     = contains(["flex_start", "spot"], var.capacity.model) || !can(regex("^a3-highgpu-[124]g$", var.group.machine_type))
    error_message = "A3 High with less than 8 GPUs is there as spot and by flex start only; received \"${var.capacity.model}\" with \"${var.group.machine_type}\". \"spot\" would pass, or the machine type \"a3-highgpu-8g\"."
  }
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`: a label of template, VMs and disks, and in the descriptions; by default name_prefix."
  type        = string
  default     = null
}

variable "group" {
  description = "The VMs: how many, machine type, GPUs to attach where the machine type brings none, whether each gets an external IP, and whether it loads signed drivers alone."
  type = object({
    instance_count = optional(number, 1)
    machine_type   = string
    gpu            = optional(object({ type = string, count = number }))
    external_ip    = optional(bool, false)
    secure_boot    = optional(bool, false)
  })
  nullable = false
}

variable "image" {
  description = "What VMs boot: the project that serves it, and exactly one of family (its newest image at each plan) and name."
  type = object({
    project = string
    family  = optional(string)
    name    = optional(string)
  })
  nullable = false
}

variable "interfaces" {
  description = "Each VM's network interfaces, nic0 first: type, and subnetwork as projects/P/regions/R/subnetworks/S. The first has the external IP, if any. Must be known at plan, as the template's name depends on it."
  type = list(object({
    nic_type   = string
    subnetwork = string
  }))
  nullable = false
}

variable "labels" {
  description = "Labels of template, VMs and disks beside the marker, which wins."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default made of cluster_id."
  type        = string
  default     = null
}

variable "metadata" {
  description = "Metadata of the VMs by which they start up."
  type        = map(string)
  default     = {}
  nullable    = false
  sensitive   = true

  validation {
    condition     = length(setintersection(keys(var.metadata), keys(var.users_metadata))) == 0
    error_message = "The start-up rests on its own metadata; received ${jsonencode(nonsensitive(keys(var.users_metadata)))} as the user's keys. ${jsonencode(nonsensitive(setsubtract(keys(var.users_metadata), keys(var.metadata))))} would pass."
  }
}

variable "metadata_identity" {
  description = "What stands for the variable metadata in the template's name, known at plan: the same map, or where a value names something that is not made yet, such as the address of a file server, one in which its name is in that place; by default metadata itself."
  type        = map(string)
  default     = null
  sensitive   = true

  validation {
    condition     = var.metadata_identity == null ? true : toset(keys(var.metadata_identity)) == toset(keys(var.metadata))
    error_message = "The identity of metadata has its keys; received ${jsonencode(try(nonsensitive(keys(var.metadata_identity)), null))}. ${jsonencode(nonsensitive(keys(var.metadata)))} would pass."
  }
}

variable "name_prefix" {
  description = "Start of every name that is made; at most 54 characters."
  type        = string
  nullable    = false
}

variable "project_id" {
  description = "Project of template and group."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the subnetwork; by default that of the zone."
  type        = string
  default     = null
}

variable "resize_requests" {
  description = "With flex start, the requests for VMs by name: how many, and for how many seconds each runs. A request is never changed: one of another name adds VMs."
  type        = map(object({ count = number, run_seconds = number }))
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.resize_requests) == 0 || var.capacity.model == "flex_start"
    error_message = "VMs are requested with flex start only; received ${jsonencode(keys(var.resize_requests))} with \"${var.capacity.model}\". {} would pass."
  }
  validation {
    condition     = alltrue([for name in keys(var.resize_requests) : can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", name))])
    error_message = "A request's name is 1 to 63 of a-z, 0-9 and -, a letter first and no - last; received ${jsonencode(keys(var.resize_requests))}. \"train-1\" would pass."
  }
  validation {
    condition     = alltrue([for request in values(var.resize_requests) : request.count >= 1 && request.count <= 1000 && floor(request.count) == request.count])
    error_message = "A request is for 1 to 1000 VMs; received ${jsonencode(values(var.resize_requests)[*].count)}. 1000 would pass, and another request for the rest."
  }
  validation {
    condition     = alltrue([for request in values(var.resize_requests) : request.run_seconds >= 600 && request.run_seconds <= 604800 && floor(request.run_seconds) == request.run_seconds])
    error_message = "Requested VMs run for 10 minutes to 7 days, in whole seconds; received ${jsonencode(values(var.resize_requests)[*].run_seconds)}. 604800 would pass."
  }
}

variable "service_account_email" {
  description = "The account that the VMs act as. Its email must be known at plan, as the template's name depends on it."
  type        = string
  nullable    = false
}

variable "users_metadata" {
  description = "The user's metadata of the VMs: its keys win over the module's, and none is of the variable metadata. A plan does not show it, as people put tokens there."
  type        = map(string)
  default     = {}
  nullable    = false
  sensitive   = true

  # Half of what Google takes as a VM's metadata. Base64 has 4 characters for 3 bytes.
  validation {
    condition     = sum(concat([0], [for value in values(var.users_metadata) : floor(length(trim(base64encode(value), "=")) * 3 / 4)])) <= 188416
    error_message = "The values of the user's metadata have at most 188416 bytes in all; received ${nonsensitive(sum(concat([0], [for value in values(var.users_metadata) : floor(length(trim(base64encode(value), "=")) * 3 / 4)])))}. A file among the copied ones would pass."
  }
}

variable "zone" {
  description = "Zone of the VMs."
  type        = string
  nullable    = false
}
