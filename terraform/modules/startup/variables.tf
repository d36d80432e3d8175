variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, which the VM is told; by default name_prefix."
  type        = string
  default     = null
}

variable "command" {
  description = "The user's shell command, which runs last; null for none. A plan does not show it, as people put tokens there."
  type        = string
  default     = null
  sensitive   = true

  # A quarter of what Google takes as a VM's metadata. Base64 has 4 characters for 3 bytes.
  validation {
    condition     = var.command == null ? true : floor(length(trim(base64encode(var.command), "=")) * 3 / 4) <= 131072
    error_message = "A command has at most 131072 bytes; received ${nonsensitive(floor(length(trim(base64encode(coalesce(var.command, " ")), "=")) * 3 / 4))}. A script among the copied files would pass."
  }
}

variable "files" {
  description = "The archive of the user's files, a .tar.gz in the state folder's bucket: the object's name and its SHA-256 in hexadecimal. Both null when nothing was copied."
  type = object({
    object = optional(string)
    sha256 = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = (var.files.object == null) == (var.files.sha256 == null)
    error_message = "An archive has both a name and a checksum; received ${jsonencode(var.files)}. {} would pass."
  }
  validation {
    condition     = var.files.sha256 == null ? true : can(regex("^[0-9a-f]{64}$", var.files.sha256))
    error_message = "A SHA-256 is 64 of 0-9 and a-f; received ${jsonencode(var.files.sha256)}. \"${sha256("")}\" would pass."
  }
}

variable "mounts" {
  description = "Storage to mount, whatever product serves it: server (\"\" where the type needs none), remote_path (a share's path, a bucket's name), local_mount, type as mount(8) knows it, and its options with commas between. Mounted in this order."
  type = list(object({
    server      = string
    remote_path = string
    local_mount = string
    type        = string
    options     = string
  }))
  default  = []
  nullable = false

  validation {
    condition     = alltrue([for type in var.mounts[*].type : contains(["gcsfuse", "nfs"], type)])
    error_message = "Storage is of type gcsfuse or nfs; received ${jsonencode(var.mounts[*].type)}. \"nfs\" would pass."
  }
  validation {
    condition     = alltrue([for mount in var.mounts : (mount.server != "") == (mount.type == "nfs")])
    error_message = "NFS has a server, gcsfuse has none; received ${jsonencode([for mount in var.mounts : { type = mount.type, server = mount.server }])}. server = \"10.0.0.2\" with type = \"nfs\" would pass."
  }
  # A line of fstab each: what ends a line, or a field, ends the mount.
  validation {
    condition     = alltrue([for path in var.mounts[*].local_mount : can(regex("^/[^\n\r]+$", path))])
    error_message = "A local mount is an absolute path; received ${jsonencode(var.mounts[*].local_mount)}. \"/mnt/data\" would pass."
  }
  validation {
    condition     = alltrue([for options in var.mounts[*].options : can(regex("^[^\\s]+$", options))])
    error_message = "Options have no blanks; received ${jsonencode(var.mounts[*].options)}. \"rw,hard\" would pass."
  }
  validation {
    condition     = length(distinct(var.mounts[*].local_mount)) == length(var.mounts)
    error_message = "Each local mount is used once; received ${jsonencode(var.mounts[*].local_mount)}. [\"/mnt/a\", \"/mnt/b\"] would pass."
  }
}

variable "name_prefix" {
  description = "Start of the names of everything in the cluster, which the VM is told."
  type        = string
  nullable    = false
}

variable "secrets" {
  description = "What the command gets from Secret Manager: a variable's name and the version's resource, projects/P/secrets/S/versions/V. The VM reads the values itself."
  type        = list(object({ name = string, resource = string }))
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for secret in var.secrets : can(regex("^projects/[^/]+/secrets/[A-Za-z0-9_-]+/versions/[^/]+$", secret.resource))])
    error_message = "A secret is named with its project and version; received ${jsonencode(var.secrets[*].resource)}. \"projects/my-project/secrets/token/versions/latest\" would pass."
  }
}

variable "startup" {
  description = "What is set up on each VM: where copied files go, the GPUs and the number of network interfaces that must be there, the Local SSDs that the machine type has (0 where that is not known), what NCCL uses between VMs (kind tcp, tcpxo or gib; the GPUs' interfaces; the plugin's image or Debian package, its daemon's image), ssh between the VMs, the notebook, the Ops Agent, Ray by version, Slurm with the partition beside `all`, when the command is begun again (restart: never, on-failure, always), after how long Google ends the VM and how many seconds before that the command is told (120 where it is null), whether the image's own updates go on while nothing runs, how they go out (a proxy and what is reached without it, certificates in PEM that count beside the public ones, below which URL packages of all hosts but Google's are, an index of Python packages), and after how many seconds without work the VMs power themselves off."
  type = object({
    files_destination = optional(string, "/usr/aiinfra/copy")
    gpus              = optional(object({ count = number, accelerator = string }))
    interfaces        = optional(number, 1)
    local_ssds        = optional(number, 0)
    node_ssh          = optional(bool, true)
    fabric            = optional(object({ kind = string, interfaces = number, plugin = optional(string), daemon = optional(string) }))
    notebook          = optional(bool, true)
    ops_agent         = optional(bool, true)
    ray               = optional(object({ version = string }))
    slurm             = optional(object({ partition = string }))
    restart           = optional(string, "never")
    max_run_seconds   = optional(number)
    idle_seconds      = optional(number)
    stop_notice       = optional(number)
    os_updates        = optional(bool, true)
    outbound          = optional(object({ proxy = optional(string), no_proxy = optional(string), certificates = optional(string), apt_mirror = optional(string), pip_index = optional(string) }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["never", "on-failure", "always"], var.startup.restart)
    error_message = "The command is restarted never, on-failure or always; received \"${var.startup.restart}\". \"never\" would pass."
  }
  validation {
    condition     = startswith(var.startup.files_destination, "/")
    error_message = "Files go to an absolute path; received \"${var.startup.files_destination}\". \"/usr/aiinfra/copy\" would pass."
  }
  validation {
    condition     = var.startup.interfaces >= 1 && floor(var.startup.interfaces) == var.startup.interfaces
    error_message = "A VM has a whole number of network interfaces, 1 or more; received ${var.startup.interfaces}. 1 would pass."
  }
  validation {
    condition     = var.startup.local_ssds >= 0 && floor(var.startup.local_ssds) == var.startup.local_ssds
    error_message = "A VM has a whole number of Local SSDs, 0 or more; received ${var.startup.local_ssds}. 0 would pass."
  }
  validation {
    condition     = var.startup.fabric == null ? true : contains(["tcp", "tcpxo", "gib"], var.startup.fabric.kind)
    error_message = "NCCL's fabric on VMs is tcp, tcpxo or gib; received ${jsonencode(var.startup.fabric)}. kind = \"tcp\" would pass."
  }
  validation {
    condition     = var.startup.fabric == null ? true : var.startup.fabric.kind == "tcp" || var.startup.fabric.plugin != null
    error_message = "A fabric but tcp has a plugin; received ${jsonencode(var.startup.fabric)}. plugin = \"nccl-gib=1.1.0\" would pass."
  }
  validation {
    condition     = var.startup.gpus == null ? true : var.startup.gpus.count >= 1 && floor(var.startup.gpus.count) == var.startup.gpus.count
    error_message = "The number of GPUs is whole, 1 or more; received ${jsonencode(var.startup.gpus)}. gpus = null would pass."
  }
  validation {
    condition     = var.startup.ray == null ? true : can(regex("^[0-9]+(\\.[0-9]+){2}[0-9a-z.]*$", var.startup.ray.version))
    error_message = "A version of Ray is three numbers with dots between; received ${jsonencode(var.startup.ray)}. version = \"2.60.0\" would pass."
  }
  validation {
    condition     = var.startup.slurm == null ? true : can(regex("^[a-z][a-z0-9-]{0,62}$", var.startup.slurm.partition)) && var.startup.slurm.partition != "all" && var.startup.ray == null
    error_message = "Slurm's partition is called as a machine family, not \"all\", and Ray is not beside it; received ${jsonencode({ slurm = var.startup.slurm, ray = var.startup.ray })}. slurm = { partition = \"a3-highgpu\" } with ray = null would pass."
  }
}

variable "state_folder" {
  description = "The deployment's folder in its bucket, where the archive and the lease of Ray's or Slurm's head are; folder without slashes at its ends. Without it VMs have no agent, and so no ranks, no jobs and no ssh between them."
  type = object({
    bucket = string
    folder = string
  })
  default = null

  validation {
    condition     = var.state_folder == null ? true : can(regex("^[^/](.*[^/])?$", var.state_folder.folder))
    error_message = "A folder neither begins nor ends with a slash, and is not empty; received ${jsonencode(var.state_folder)}. folder = \"train-deployment\" would pass."
  }
  validation {
    condition     = var.state_folder != null || (var.files.object == null && var.startup.ray == null && var.startup.slurm == null && var.startup.idle_seconds == null)
    error_message = "Files, Ray, Slurm and the end of idle VMs rest on the deployment's folder; received null with ${jsonencode({ files = var.files, ray = var.startup.ray, slurm = var.startup.slurm, idle_seconds = var.startup.idle_seconds })}. { bucket = \"my-bucket\", folder = \"train-deployment\" } would pass."
  }
}
