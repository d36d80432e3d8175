# Every message says the rule, the value received and a value that would pass, to people who wrote an env.list.

variable "boot_disk" {
  description = "Boot disk of each VM: size in GiB, at least the image's, type, and the key of Cloud KMS that encrypts it, without a version; null for Google's own. A change replaces the template; running VMs keep their disk."
  type        = object({ size_gb = optional(number, 2000), type = optional(string, "pd-ssd"), kms_key = optional(string) })
  default     = {}
  nullable    = false

  validation {
    condition     = var.boot_disk.size_gb >= 10 && var.boot_disk.size_gb <= 65536 && floor(var.boot_disk.size_gb) == var.boot_disk.size_gb
    error_message = "A boot disk has a whole number of GiB from 10 to 65536; received ${var.boot_disk.size_gb}. 2000 would pass."
  }
  validation {
    condition     = contains(["hyperdisk-balanced", "pd-balanced", "pd-extreme", "pd-ssd", "pd-standard"], var.boot_disk.type)
    error_message = "A boot disk is of type hyperdisk-balanced, pd-balanced, pd-extreme, pd-ssd or pd-standard; received \"${var.boot_disk.type}\". \"pd-ssd\" would pass."
  }
}

# The rules of what a module takes as it is are in the module, for whatever root
# uses it; so with capacity, mounts, shares, files and requests.
variable "capacity" {
  description = "Where VMs come from: model standard, spot, reservation or reservation_bound (then its name, and its own placement policies) or flex_start; after how many seconds Google deletes each (flex_start: needed); after how many without work they power themselves off, and so are not made again when they fail; whether they stand close together, or their group keeps the workload policy of VMs that do; and the accelerator topology that they are parts of. A change replaces the template; running VMs stay as they are."
  type        = object({ model = optional(string, "standard"), reservation = optional(string), max_run_seconds = optional(number), idle_seconds = optional(number), compact = optional(bool, false), keeps_policy = optional(bool, false), policies = optional(list(string), []), topology = optional(string) })
  default     = {}
  nullable    = false
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, by which everything that this root made is found again; by default name_prefix. The same at every run: a change replaces network and template."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_id == null ? true : can(regex("^[a-z0-9_-]{1,63}$", var.cluster_id))
    error_message = "The marker is a label's value: 1 to 63 of a-z, 0-9, _ and -; received ${jsonencode(var.cluster_id)}. \"3f9c2a71\" would pass."
  }
}

variable "existing" {
  description = "With the network_config existing, what the VMs join and what stays as it is: the network, as projects/P/global/networks/N, and its subnetwork, as projects/P/regions/R/subnetworks/S, the interfaces after the first, in order, and the firewall rules to make there, as the module network has them; else null."
  type        = object({ network = string, subnetwork = string, interfaces = optional(list(object({ nic_type = string, subnetwork = string })), []), rules = optional(list(object({ name = string, network = string, source = string, allow = list(object({ protocol = string, ports = list(string) })) })), []) })
  default     = null
}

variable "files" {
  description = "The archive of files that every VM gets: its file, from the root folder, and its SHA-256; both null for none. Other content replaces the template; running VMs keep what they have."
  type        = object({ archive = optional(string), sha256 = optional(string) })
  default     = {}
  nullable    = false
}

variable "filestores" {
  description = "Filestore shares to make and to mount on every VM: path, tier, size in GiB, and location, a region for the tiers ENTERPRISE and REGIONAL, else a zone; and the key of Cloud KMS that encrypts it, which counts for a new share alone. Another size grows a share in place; another path, tier or location is another share, and the old one is deleted with all that is on it."
  type        = list(object({ path = string, tier = string, size_gb = number, location = string, kms_key = optional(string) }))
  default     = []
  nullable    = false
}

variable "gcs_mounts" {
  description = "Buckets that exist and are mounted on every VM, their paths, whether they are read only, and how the VMs' account is given access to them (see the module gcs-mounts)."
  type        = list(object({ bucket = string, path = string, grant = optional(string, "own"), read_only = optional(bool, false) }))
  default     = []
  nullable    = false
}

variable "gcs_options" {
  description = "Options of gcsfuse for every mounted bucket, as `name` or `name=value`. A change replaces the template."
  type        = list(string)
  default     = ["implicit-dirs", "dir-mode=777", "file-mode=777", "metadata-cache-ttl-secs=60"]
  nullable    = false
}

variable "gpu_networks" {
  description = "The networks of each VM's second interface and those after it, in order, as multi_nic_network makes them: MTU in bytes, type of the interfaces, how many subnetworks, each for one interface, and for RDMA the network profile, without the zone that Google's name of it begins with."
  type        = list(object({ mtu = number, nic_type = string, subnets = number, profile = optional(string) }))
  default     = []
  nullable    = false
}

variable "group" {
  description = "The VMs, all equal: how many, machine type, GPUs where the machine type does not fix them (N1), whether each gets an external IP (null: in the default network, which has no other way out), and whether it loads signed drivers alone."
  type        = object({ instance_count = optional(number, 1), machine_type = string, gpu = optional(object({ type = string, count = number })), external_ip = optional(bool), secure_boot = optional(bool, false) })
  nullable    = false

  validation {
    condition     = var.group.instance_count >= 1 && floor(var.group.instance_count) == var.group.instance_count
    error_message = "A group has a whole number of VMs, 1 or more; received ${var.group.instance_count}. 1 would pass."
  }
  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)+$", var.group.machine_type))
    error_message = "A machine type is a bare name, family-kind-size; received \"${var.group.machine_type}\". \"a2-highgpu-2g\" would pass."
  }
  validation {
    condition     = startswith(var.group.machine_type, "n1-") == (var.group.gpu != null)
    error_message = "GPUs are attached to N1 machine types, and others bring their own; received gpu ${jsonencode(var.group.gpu)} with \"${var.group.machine_type}\". gpu = null would pass with \"a2-highgpu-2g\", gpu = { type = \"nvidia-tesla-t4\", count = 1 } with \"n1-standard-8\"."
  }
  validation {
    condition     = var.group.gpu == null ? true : var.group.gpu.count >= 1 && floor(var.group.gpu.count) == var.group.gpu.count
    error_message = "The number of GPUs per VM is whole, 1 or more; received gpu ${jsonencode(var.group.gpu)}. count = 1 would pass."
  }
}

variable "image" {
  description = "What VMs boot: the project that serves the image, and either a family, whose newest image is taken at each plan, or one image by name. The default has no software for the networks of A3 Mega and newer, and none for Arm (A4X)."
  type        = object({ project = optional(string, "deeplearning-platform-release"), family = optional(string), name = optional(string) })
  default     = { family = "pytorch-2-9-cu129-ubuntu-2404-nvidia-580" }
  nullable    = false

  validation {
    condition     = (var.image.family == null) != (var.image.name == null)
    error_message = "An image is named by exactly one of family and name; received ${jsonencode(var.image)}. family = \"common-cu129-ubuntu-2204-nvidia-580\" alone would pass."
  }
}

variable "ip_ranges" {
  description = "Ranges of a network that is made: the block that GPU networks are cut from in 16 parts, that of the first interface. A change replaces what is in it, but for a larger first one."
  type        = object({ block = optional(string, "10.0.0.0/12"), first = optional(string, "10.0.0.0/16") })
  default     = {}
  nullable    = false
}

variable "labels" {
  description = "The user's labels for template, VMs and disks; the marker is added. A change replaces the template; running VMs keep their labels."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.labels : can(regex("^[\\p{Ll}\\p{Lo}][\\p{Ll}\\p{Lo}\\p{N}_-]{0,62}$", key)) && can(regex("^[\\p{Ll}\\p{Lo}\\p{N}_-]{0,63}$", value))])
    error_message = "A label's key is 1 to 63 of lower-case letters, digits, _ and -, a letter first, and its value up to 63 of them; received ${jsonencode(var.labels)}. { team = \"ml-research\" } would pass."
  }
  validation {
    condition     = length(var.labels) <= 63
    error_message = "A resource has at most 64 labels, one of them the marker; received ${length(var.labels)}. 63 would pass."
  }
  validation {
    condition     = !contains(keys(var.labels), "aiinfra-cluster")
    error_message = "The label aiinfra-cluster is the marker and cannot be set; received \"${lookup(var.labels, "aiinfra-cluster", "")}\". The labels without it would pass."
  }
}

variable "marker" {
  description = "Description of all that is made and has one: the marker `aiinfra-cluster=ID`, then the URL of the state's folder where there is room; by default made of cluster_id."
  type        = string
  default     = null

  validation {
    condition     = var.marker == null ? true : startswith(var.marker, "aiinfra-cluster=${coalesce(var.cluster_id, var.name_prefix)}") && length(var.marker) <= 256
    error_message = "The marker is aiinfra-cluster= and the cluster's id, in at most 256 characters; received ${jsonencode(var.marker)}. \"aiinfra-cluster=${coalesce(var.cluster_id, var.name_prefix)}\" would pass."
  }
}

variable "metadata" {
  description = "The user's metadata of the VMs; its keys win over the tool's. A change replaces the template; running VMs keep theirs. A plan does not show it, as people put tokens there."
  type        = map(string)
  default     = {}
  nullable    = false
  sensitive   = true

  validation {
    condition     = alltrue([for key in keys(var.metadata) : can(regex("^[a-zA-Z0-9_-]{1,127}$", key))])
    error_message = "A metadata key is 1 to 127 of letters, digits, _ and -; received ${jsonencode(nonsensitive(keys(var.metadata)))}. \"my-key\" would pass."
  }
}

variable "name_prefix" {
  description = "Start of every name, and so what sets two clusters of one project apart. A change replaces everything."
  type        = string
  nullable    = false

  # 24: the service account's id, "<name_prefix>-nodes", may have 30 characters.
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,22}[a-z0-9])?$", var.name_prefix))
    error_message = "A name prefix is 1 to 24 of a-z, 0-9 and -, a letter first and no - last; received \"${var.name_prefix}\" (${length(var.name_prefix)} characters). \"llm-train\" would pass."
  }
}

variable "network_config" {
  description = "default_network: the VMs join the project's network \"default\", which stays as it is. new_network: a network of their own, open inside, with ssh by Identity-Aware Proxy and Cloud NAT. multi_nic_network: the same for the first interface, and gpu_networks for the others. existing: the network that the variable existing names, of whatever project, in which nothing is made."
  type        = string
  default     = "default_network"
  nullable    = false

  validation {
    condition     = (var.network_config == "multi_nic_network") == (length(var.gpu_networks) > 0)
    error_message = "multi_nic_network comes with gpu_networks, the others without; received \"${var.network_config}\" with ${length(var.gpu_networks)} of them. \"${length(var.gpu_networks) > 0 ? "multi_nic_network" : "new_network"}\" would pass."
  }
  validation {
    condition     = (var.network_config == "existing") == (var.existing != null)
    error_message = "existing comes with the variable of that name, the others without; received \"${var.network_config}\" with ${jsonencode(var.existing)}. \"${var.existing != null ? "existing" : "new_network"}\" would pass."
  }
  validation {
    condition     = contains(["default_network", "existing", "multi_nic_network", "new_network"], var.network_config)
    error_message = "A network configuration is default_network, existing, new_network or multi_nic_network; received \"${var.network_config}\". \"new_network\" would pass."
  }
}

variable "project_id" {
  description = "Project that holds and pays for the cluster; example.com:my-project where it is domain scoped."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "A project id is 6 to 30 of a-z, 0-9 and -, a letter first and no - last, after its domain and a colon if it has one; received \"${var.project_id}\". \"my-project\" would pass."
  }
}

variable "region" {
  description = "Region of subnetwork, router and NAT; by default that of the zone."
  type        = string
  default     = null

  validation {
    condition     = var.region == null ? true : can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region is continent-area and a number; received ${jsonencode(var.region)}. \"us-central1\" would pass."
  }
}

variable "resize_requests" {
  description = "With flex start, the requests for VMs by name: how many, and for how many seconds each runs. Keep an open request as it is; to grow, add one of another name for the difference; take one that has ended out of the state before it goes from here."
  type        = map(object({ count = number, run_seconds = number }))
  default     = {}
  nullable    = false
}

variable "secrets" {
  description = "Secrets of Secret Manager that the command finds in its environment: the variable's name, and project, secret and version. An account that is made here gets access to those of this project."
  type        = list(object({ name = string, project = string, secret = string, version = string }))
  default     = []
  nullable    = false
}

variable "service_account" {
  description = "The account that the VMs act as: create = true makes one with the least roles; else the given email, or with none the project's default compute account."
  type        = object({ create = optional(bool, false), email = optional(string) })
  default     = { create = true }
  nullable    = false

  validation {
    condition     = !var.service_account.create || var.service_account.email == null
    error_message = "A service account is either made or given; received create = true with the email ${jsonencode(var.service_account.email)}. create = false would pass."
  }
  validation {
    condition     = var.service_account.email == null ? true : can(regex("^[^@ ]+@[^@ ]+\\.gserviceaccount\\.com$", var.service_account.email))
    error_message = "A service account's email ends with .gserviceaccount.com; received ${jsonencode(var.service_account.email)}. \"nodes@my-project.iam.gserviceaccount.com\" would pass."
  }
}

variable "startup" {
  description = "What VMs do when they start: where files land, GPUs, Local SSDs and NCCL's fabric that each is to have (without GPUs nothing waits for their driver), and what is set up beside: ssh between the VMs, Jupyter, the Ops Agent with a dashboard, a Ray cluster of a version, Slurm with a partition of that name, when the command is begun again (never, on-failure, always), how many seconds before the VM's end it is told, whether the image's own updates go on while nothing runs, and how they go out: by a proxy, whose certificates count, where packages are."
  type = object({
    files_destination = optional(string, "/usr/aiinfra/copy")
    gpus              = optional(object({ count = number, accelerator = string }))
    local_ssds        = optional(number, 0)
    node_ssh          = optional(bool, true), notebook = optional(bool, true), ops_agent = optional(bool, true), os_updates = optional(bool, true)
    fabric            = optional(object({ kind = string, interfaces = number, plugin = optional(string), daemon = optional(string) }))
    ray               = optional(object({ version = string }))
    slurm             = optional(object({ partition = string }))
    restart           = optional(string, "never")
    stop_notice       = optional(number)
    outbound          = optional(object({ proxy = optional(string), no_proxy = optional(string), certificates = optional(string), apt_mirror = optional(string), pip_index = optional(string) }))
  })
  default  = {}
  nullable = false
}

variable "startup_command" {
  description = "The user's shell command, which VMs run last; null for none. A change replaces the template. A plan does not show it, as people put tokens there."
  type        = string
  default     = null
  sensitive   = true
}

variable "state_folder" {
  description = "Bucket and folder of the deployment, without slashes at its ends: there VMs agree on ranks, find files and jobs, and elect a Ray head; null for VMs that need none of it, and then have no agent; an empty folder would give them every deployment of the bucket, which has uniform bucket-level access."
  type        = object({ bucket = string, folder = string })
  default     = null

  validation {
    condition     = var.state_folder == null ? true : can(regex("^[^/]+(/[^/]+)*$", var.state_folder.folder))
    error_message = "A folder has a name, and no slashes at its ends; received ${jsonencode(var.state_folder)}. folder = \"train-deployment\" would pass."
  }
}

variable "zone" {
  description = "Zone of the VMs; the machine type must be offered there."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^${coalesce(var.region, "[a-z]+-[a-z]+[0-9]+")}-[a-z0-9]+$", var.zone))
    error_message = "A zone is its region and a letter, or an AI zone's ending; received \"${var.zone}\" with the region ${jsonencode(var.region)}. \"${coalesce(var.region, "us-central1")}-a\" would pass."
  }
}
