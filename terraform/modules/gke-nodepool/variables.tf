# Google takes most wrong combinations without a word and answers hours later,
# or never: what its documentation forbids is refused here.

variable "cluster" {
  description = "The cluster that the pool joins: name, location, its version once it is made, and release channel."
  type = object({
    name            = string
    location        = string
    version         = string
    release_channel = string
  })
  nullable = false
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, a label of the nodes."
  type        = string
  nullable    = false
}

variable "hold_upgrades" {
  description = "Whether nodes are upgraded only when asked where the cluster is on no release channel; on one, the cluster's maintenance exclusion says so."
  type        = bool
  default     = true
  nullable    = false
}

variable "labels" {
  description = "The user's labels for the nodes; the marker is added."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default made of cluster_id."
  type        = string
  default     = null
}

variable "name" {
  description = "The pool's name, at most 40 characters. A change replaces the pool."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "A pool's name is 1 to 40 of a-z, 0-9 and -, a letter first and no - last; received \"${var.name}\". \"train-a100\" would pass."
  }
}

variable "networks" {
  description = "Networks and subnetworks of each node's interfaces after the first, by bare names, in the interfaces' order; [] for one interface."
  type        = list(object({ network = string, subnetwork = string }))
  default     = []
  nullable    = false
}

variable "pool" {
  description = "The nodes, all equal: machine type, zone, their GPUs with the driver that GKE installs, how they are got, how many (count, or limits of scaling), boot disk, local SSDs, whether they stand close together, the placement policy of their reservation, another version for a pool without nodes (null: GKE's own choice, or what it has), and whether GKE makes the networks for RDMA, installs gIB and gives pods the interfaces that they claim."
  type = object({
    machine_type = string
    zone         = string
    gpu          = object({ type = string, count = number, driver = optional(string, "DEFAULT") })
    capacity = optional(object({
      model           = optional(string, "standard")
      reservation     = optional(string)
      max_run_seconds = optional(number)
    }), {})
    size       = optional(object({ count = optional(number), min = optional(number), max = optional(number) }), { count = 1 })
    disk       = optional(object({ size_gb = optional(number, 100), type = optional(string, "pd-ssd"), kms_key = optional(string) }), {})
    local_ssds = optional(number, 0)
    max_pods   = optional(number)
    compact    = optional(bool, false)
    policy     = optional(string)
    version    = optional(string)

    managed_rdma = optional(bool, false)
  })
  nullable = false

  validation {
    condition     = startswith(var.pool.zone, "${var.cluster.location}-") || var.pool.zone == var.cluster.location
    error_message = "A pool is in one zone of its cluster's location; received \"${var.pool.zone}\" with \"${var.cluster.location}\". \"${var.cluster.location}-a\" would pass."
  }
  validation {
    condition     = contains(["flex_start", "flex_start_queued", "queued", "reservation", "spot", "standard"], var.pool.capacity.model)
    error_message = "Capacity is standard, spot, reservation, flex_start, queued or flex_start_queued; received \"${var.pool.capacity.model}\". \"standard\" would pass."
  }
  validation {
    condition     = (var.pool.capacity.reservation != null) == (var.pool.capacity.model == "reservation")
    error_message = "A reservation comes with the model reservation and with no other: spot, flex start and queued nodes come from none; received ${jsonencode(var.pool.capacity)}. { model = \"reservation\", reservation = \"mine\" } would pass."
  }
  validation {
    condition     = (var.pool.size.count == null) == (var.pool.size.min != null) && (var.pool.size.min == null) == (var.pool.size.max == null)
    error_message = "A pool has a fixed count, or both min and max; received ${jsonencode(var.pool.size)}. { count = 2 } would pass."
  }
  validation {
    condition     = alltrue([for size in values(var.pool.size) : size == null ? true : size >= 0 && size <= 1000 && floor(size) == size])
    error_message = "A pool has 0 to 1000 nodes; received ${jsonencode(var.pool.size)}. { min = 0, max = 1000 } would pass."
  }
  validation {
    condition     = var.pool.size.min == null || var.pool.size.max == null ? true : var.pool.size.min <= var.pool.size.max && var.pool.size.max >= 1
    error_message = "A pool's min is at most its max, which is 1 or more; received ${jsonencode(var.pool.size)}. { min = 0, max = 4 } would pass."
  }
  validation {
    condition     = !can(regex("flex_start|queued", var.pool.capacity.model)) || var.pool.size.count == null
    error_message = "Nodes of flex start and of queued provisioning come and go, so their number cannot be fixed; received ${jsonencode(var.pool.size)} with \"${var.pool.capacity.model}\". { min = 0, max = 4 } would pass."
  }
  validation {
    condition     = !can(regex("flex_start|queued", var.pool.capacity.model)) || var.pool.size.min == null ? true : var.pool.size.min == 0
    error_message = "Pools of flex start and of queued provisioning start empty, with min = 0; received ${jsonencode(var.pool.size)} with \"${var.pool.capacity.model}\". { min = 0, max = 4 } would pass."
  }
  validation {
    condition     = var.pool.capacity.max_run_seconds == null ? true : var.pool.capacity.max_run_seconds >= 1 && var.pool.capacity.max_run_seconds <= 604800 && floor(var.pool.capacity.max_run_seconds) == var.pool.capacity.max_run_seconds
    error_message = "Nodes run for a whole number of seconds, at most 604800, which is 7 days; received ${jsonencode(var.pool.capacity)}. 604800 would pass."
  }
  validation {
    condition     = var.pool.capacity.model != "flex_start" || var.pool.capacity.max_run_seconds != null
    error_message = "Nodes of flex start have an end, and a pool that does not say it is replaced at the next plan; received ${jsonencode(var.pool.capacity)}. max_run_seconds = 604800 would pass."
  }
  validation {
    condition     = var.pool.policy == null || (var.pool.capacity.model == "reservation" && !var.pool.compact)
    error_message = "The placement policy of a reservation goes with it alone, and with no other placement; received ${jsonencode(var.pool)}. policy = null would pass."
  }
  validation {
    condition     = !var.pool.managed_rdma || can(regex("^(a3-ultragpu|a4-highgpu)-8g$", var.pool.machine_type))
    error_message = "GKE manages RDMA on a3-ultragpu-8g and a4-highgpu-8g alone; received managed_rdma = true with \"${var.pool.machine_type}\". managed_rdma = false would pass."
  }
  validation {
    condition     = !var.pool.managed_rdma || !endswith(var.pool.capacity.model, "queued")
    error_message = "Pods of a queue's request can claim no interfaces; received managed_rdma = true with \"${var.pool.capacity.model}\". managed_rdma = false would pass."
  }
  validation {
    condition     = !var.pool.managed_rdma || length(var.networks) == 0
    error_message = "Nodes whose networks GKE makes are in no other ones; received managed_rdma = true with ${jsonencode(var.networks)}. networks = [] would pass."
  }
  validation {
    condition     = !var.pool.compact || !endswith(var.pool.capacity.model, "queued")
    error_message = "Queued nodes cannot be placed compactly; received compact = true with \"${var.pool.capacity.model}\". compact = false would pass."
  }
  validation {
    condition     = !var.pool.compact || var.pool.capacity.model != "flex_start" || can(regex("^(a3-ultragpu|a4|h4d)-", var.pool.machine_type))
    error_message = "With flex start only A3 Ultra, A4 and H4D can be placed compactly; received compact = true with \"${var.pool.machine_type}\". compact = false would pass."
  }
  validation {
    condition     = var.pool.gpu.count >= 1 && floor(var.pool.gpu.count) == var.pool.gpu.count
    error_message = "A node has a whole number of GPUs, 1 or more; received ${jsonencode(var.pool.gpu)}. count = 1 would pass."
  }
  validation {
    condition     = contains(["DEFAULT", "LATEST"], var.pool.gpu.driver)
    error_message = "The GPU driver is DEFAULT or LATEST; received ${jsonencode(var.pool.gpu)}. \"DEFAULT\" would pass."
  }
  # TPUs neither queue nor share anything with the rest of this module.
  validation {
    condition     = !can(regex("^(ct[0-9]|tpu)", var.pool.machine_type))
    error_message = "Only GPU machine types make a pool, as TPUs are refused with flex start and queueing together; received \"${var.pool.machine_type}\". \"a2-highgpu-1g\" would pass."
  }
  validation {
    condition     = var.pool.disk.size_gb >= 10 && var.pool.disk.size_gb <= 65536 && floor(var.pool.disk.size_gb) == var.pool.disk.size_gb
    error_message = "A boot disk has a whole number of GiB from 10 to 65536; received ${var.pool.disk.size_gb}. 100 would pass."
  }
  validation {
    condition     = var.pool.local_ssds >= 0 && floor(var.pool.local_ssds) == var.pool.local_ssds
    error_message = "A node has a whole number of local SSDs, 0 or more; received ${var.pool.local_ssds}. 0 would pass."
  }
}

variable "project_id" {
  description = "Project of the cluster."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the zone, where the policy for compact nodes of flex start is; by default as the zone says it."
  type        = string
  default     = null
}

variable "service_account_email" {
  description = "The account that the nodes act as. A change replaces the pool."
  type        = string
  nullable    = false
}
