# Every message says the rule, the value received and a value that would pass:
# these are read by people who wrote an env.list, not this file.

# The rules of what is handed on are in the modules, for whatever root uses those.
variable "cluster" {
  description = "The control plane: region (null: that of the zone), full version (null: the channel's default at creation), release channel, networks that may reach it by IP ([]: no IP endpoint), whether GKE's Ray operator runs on it, the weekly window in which GKE may upgrade it and its nodes (null: nodes when asked), and the key of Cloud KMS for Kubernetes' secrets and the disks of system nodes (null: Google's own)."
  type = object({
    location         = optional(string)
    version          = optional(string)
    release_channel  = optional(string, "REGULAR")
    authorized_cidrs = optional(list(string), [])
    ray_operator     = optional(bool, false)
    kms_key          = optional(string)
    maintenance      = optional(object({ recurrence = string, start_time = string, end_time = string }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.cluster.location == null ? true : startswith(var.zone, "${var.cluster.location}-")
    error_message = "A cluster is in the region of its networks; received ${jsonencode(var.cluster.location)} with the zone \"${var.zone}\". null would pass."
  }
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, by which everything that this root made is found again; by default name_prefix. The same at every run: a change replaces network and cluster."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_id == null ? true : can(regex("^[a-z0-9_-]{1,63}$", var.cluster_id))
    error_message = "The marker is a label's value: 1 to 63 of a-z, 0-9, _ and -; received ${jsonencode(var.cluster_id)}. \"3f9c2a71\" would pass."
  }
}

variable "existing" {
  description = "The network that nodes join and that stays as it is: the network, as projects/P/global/networks/N, and its subnetwork, as projects/P/regions/R/subnetworks/S, the interfaces after the first of nodes whose pool has GPU networks, in order, in the same project, and the firewall rules to make there, as the module network has them; null to make one."
  type        = object({ network = string, subnetwork = string, interfaces = optional(list(object({ nic_type = string, subnetwork = string })), []), rules = optional(list(object({ name = string, network = string, source = string, allow = list(object({ protocol = string, ports = list(string) })) })), []) })
  default     = null

  validation {
    condition     = var.existing == null || length(var.gpu_networks) + length(var.more_gpu_networks) == 0
    error_message = "Nothing is made beside a network that exists; received ${jsonencode(var.existing)} with networks for GPUs. null would pass, or pools without them."
  }
}

variable "filestores" {
  description = "Filestore shares to make for pods to mount: path, tier, size in GiB, and location, a region for the tiers ENTERPRISE and REGIONAL, else a zone; and the key of Cloud KMS that encrypts it, which counts for a new share alone. Another size grows a share in place; another path, tier or location is another share, and the old one is deleted with all that is on it."
  type        = list(object({ path = string, tier = string, size_gb = number, location = string, kms_key = optional(string) }))
  default     = []
  nullable    = false
}

variable "gcs_mounts" {
  description = "Buckets that exist and that pods mount, their paths, and whether they are read only; the workload account is given access to them."
  type        = list(object({ bucket = string, path = string, grant = optional(string, "own"), read_only = optional(bool, false) }))
  default     = []
  nullable    = false

  validation {
    condition     = length(setintersection(var.gcs_mounts[*].path, var.filestores[*].path)) == 0
    error_message = "Buckets and shares have paths of their own; received ${jsonencode(setintersection(var.gcs_mounts[*].path, var.filestores[*].path))} for both. ${jsonencode([for path in var.gcs_mounts[*].path : "${path}-bucket"])} would pass."
  }
}

variable "gpu_networks" {
  description = "The networks of the second interface and those after it, in order, of the nodes whose pool asks for them, and whose kind is not in more_gpu_networks: MTU in bytes, type of the interfaces, how many subnetworks, each for one interface, and for RDMA the network profile, without the zone that Google's name of it begins with."
  type        = list(object({ mtu = number, nic_type = string, subnets = number, profile = optional(string) }))
  default     = []
  nullable    = false
}

variable "ip_ranges" {
  description = "Ranges of a network that is made: the block that GPU networks are cut from in 16 parts, that of the first interface. A change replaces what is in it, but for a larger first one."
  type        = object({ block = optional(string, "10.0.0.0/12"), first = optional(string, "10.0.0.0/16") })
  default     = {}
  nullable    = false
}

variable "labels" {
  description = "The user's labels for cluster and nodes; the marker is added."
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

variable "more_gpu_networks" {
  description = "The same for pools whose GPUs have another kind of network: kind, which becomes part of the networks' names, -> networks as in gpu_networks. A kind keeps its place here or there as long as it exists: the other one has networks of its own."
  type = map(list(object({
    mtu      = number
    nic_type = string
    subnets  = number
    profile  = optional(string)
  })))
  default  = {}
  nullable = false

  # The longest name, "<name_prefix>-gpu-internal-<kind>-15-<hash>", may have 63 characters.
  validation {
    condition     = alltrue([for kind in keys(var.more_gpu_networks) : can(regex("^[a-z][a-z0-9]{0,11}$", kind))])
    error_message = "A kind of network is 1 to 12 of a-z and 0-9, a letter first; received ${jsonencode(keys(var.more_gpu_networks))}. \"rdma\" would pass."
  }
}

variable "name_prefix" {
  description = "Start of every name, and so what sets two clusters of one project apart. A change replaces everything."
  type        = string
  nullable    = false

  # 21: the service account's id, "<name_prefix>-workload", may have 30 characters.
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,19}[a-z0-9])?$", var.name_prefix))
    error_message = "A name prefix is 1 to 21 of a-z, 0-9 and -, a letter first and no - last; received \"${var.name_prefix}\" (${length(var.name_prefix)} characters). \"llm-train\" would pass."
  }
}

variable "node_pools" {
  description = "The GPU pools by name: machine type, zone (null: that of the root), each node's GPUs and the driver that GKE installs, how nodes are got, how many (count, or min and max), boot disk, local SSDs, whether they stand close together, the placement policy of their reservation, another version for a pool without nodes (null: GKE's own choice, or what it has), and the kind of their networks for GPUs, if they have any: a key of more_gpu_networks, or any other word for gpu_networks; or whether GKE makes these networks, installs gIB and gives pods the interfaces that they claim, of all pools with RDMA or none."
  type = map(object({
    machine_type = string
    zone         = optional(string)
    gpu          = object({ type = string, count = number, driver = optional(string, "DEFAULT") })
    capacity = optional(object({
      model           = optional(string, "standard")
      reservation     = optional(string)
      max_run_seconds = optional(number)
    }), {})
    size         = optional(object({ count = optional(number), min = optional(number), max = optional(number) }), { count = 1 })
    disk         = optional(object({ size_gb = optional(number, 100), type = optional(string, "pd-ssd"), kms_key = optional(string) }), {})
    local_ssds   = optional(number, 0)
    max_pods     = optional(number)
    compact      = optional(bool, false)
    policy       = optional(string)
    version      = optional(string)
    gpu_networks = optional(string)
    managed_rdma = optional(bool, false)
  }))
  nullable = false

  validation {
    condition     = !contains(keys(var.node_pools), "${var.name_prefix}-system")
    error_message = "\"${var.name_prefix}-system\" is the system pool; received ${jsonencode(keys(var.node_pools))}. \"${var.name_prefix}-a100\" would pass."
  }
  validation {
    condition     = length(setsubtract(compact(values(var.node_pools)[*].gpu_networks), keys(var.more_gpu_networks))) == (length(var.gpu_networks) + length(try(var.existing.interfaces, [])) > 0 ? 1 : 0)
    error_message = "gpu_networks, or the interfaces that exist, are of one kind, for the pools that ask for it, and none else; received ${length(var.gpu_networks)} of them for ${jsonencode({ for name, pool in var.node_pools : name => pool.gpu_networks })}. gpu_networks = [] with gpu_networks = null in each pool would pass."
  }
  validation {
    condition     = !anytrue(values(var.node_pools)[*].managed_rdma) || length(compact(values(var.node_pools)[*].gpu_networks)) == 0
    error_message = "GKE manages the GPU networks of all pools or of none; received ${jsonencode({ for name, pool in var.node_pools : name => { gpu_networks = pool.gpu_networks, managed_rdma = pool.managed_rdma } })}. managed_rdma = false in each pool would pass."
  }
  validation {
    condition     = length(setsubtract(keys(var.more_gpu_networks), compact(values(var.node_pools)[*].gpu_networks))) == 0
    error_message = "more_gpu_networks are made for the pools that ask for them; received ${jsonencode(keys(var.more_gpu_networks))} for ${jsonencode({ for name, pool in var.node_pools : name => pool.gpu_networks })}. more_gpu_networks = {} would pass."
  }
  validation {
    condition = alltrue([
      for kind in compact(values(var.node_pools)[*].gpu_networks) :
      alltrue([for network in lookup(var.more_gpu_networks, kind, var.gpu_networks) : network.profile == null]) || length(distinct([for pool in values(var.node_pools) : coalesce(pool.zone, var.zone) if pool.gpu_networks == kind])) == 1
    ])
    error_message = "A network for RDMA is of one zone, and so are all pools in it; received ${jsonencode({ for name, pool in var.node_pools : name => pool.zone if pool.gpu_networks != null })}. One zone would pass."
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

variable "range_names" {
  description = "Names of the subnetwork's ranges for pods and Services: those of an existing one, or what they are called where one is made. A change replaces the cluster."
  type        = object({ pods = optional(string, "pods"), services = optional(string, "services") })
  default     = {}
  nullable    = false
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

variable "secondary_ranges" {
  description = "The ranges of pods and Services of a network that is made. A change replaces subnetwork and cluster."
  type        = object({ pods = optional(string, "10.16.0.0/12"), services = optional(string, "10.32.0.0/20") })
  default     = {}
  nullable    = false
}

variable "secrets" {
  description = "Secrets of Secret Manager that pods read: the variable's name, and project, secret and version. The pods' account gets access to those of this project."
  type        = list(object({ name = string, project = string, secret = string, version = string }))
  default     = []
  nullable    = false
}

variable "service_account" {
  description = "The account that the nodes act as: create = true makes one with the least roles; else the given email, or with none the project's default compute account."
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

variable "state_folder" {
  description = "Bucket and folder of the deployment, without slashes at its ends: pods are kept away from it, also where its bucket is mounted, but for the folders of jobs (of the tool: Run); null for none. The bucket has uniform bucket-level access."
  type        = object({ bucket = string, folder = string })
  default     = null

  # An empty folder would keep pods from the whole bucket.
  validation {
    condition     = var.state_folder == null ? true : can(regex("^[^/]+(/[^/]+)*$", var.state_folder.folder))
    error_message = "A folder has a name, and no slashes at its ends; received ${jsonencode(var.state_folder)}. folder = \"train-deployment\" would pass."
  }
}

variable "system_pool" {
  description = "The pool for system pods, neither flex start nor queued: machine type, limits of scaling, GiB of boot disk, whether on spot machines, zone (null: that of the root)."
  type        = object({ machine_type = optional(string, "e2-standard-4"), min = optional(number, 1), max = optional(number, 3), disk_size_gb = optional(number, 100), spot = optional(bool, false), zone = optional(string), max_pods = optional(number) })
  default     = {}
  nullable    = false
}

variable "zone" {
  description = "Zone of the provider, and of what names no other."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^${coalesce(var.region, "[a-z]+-[a-z]+[0-9]+")}-[a-z0-9]+$", var.zone))
    error_message = "A zone is its region and a letter, or an AI zone's ending; received \"${var.zone}\" with the region ${jsonencode(var.region)}. \"${coalesce(var.region, "us-central1")}-a\" would pass."
  }
}
