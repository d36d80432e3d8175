variable "ip_block" {
  description = "Block that is cut into 16 equal ranges: the first is left for the network of the first interface, the n-th after it is that of interface n. A /12 gives each interface a /16."
  type        = string
  default     = "10.0.0.0/12"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.ip_block)) ? cidrhost(var.ip_block, 0) == split("/", var.ip_block)[0] : false
    error_message = "A block is an IPv4 network address with its prefix length; received \"${var.ip_block}\". \"10.0.0.0/12\" would pass."
  }
  # Google's smallest subnetwork is a /29, and the cut adds 4.
  validation {
    condition     = length(var.networks) == 0 || try(tonumber(split("/", var.ip_block)[1]) <= 25, true)
    error_message = "A block has a prefix length of at most 25, or its sixteenth part would be too small for a subnetwork; received \"${var.ip_block}\". \"10.0.0.0/12\" would pass."
  }
}

variable "kind" {
  description = "Kind of network, part of every name where a cluster has several; null where there is one alone. A change gives new names to what is made for another reason."
  type        = string
  default     = null
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default `aiinfra-cluster=` and name_prefix."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "Start of every name that is made."
  type        = string
  nullable    = false
}

variable "networks" {
  description = "The networks of a VM's second interface and those after it, in the interfaces' order: MTU in bytes, type of interface, how many subnetworks (each for one interface), and for RDMA the network profile without its zone."
  type = list(object({
    mtu      = number
    nic_type = string
    subnets  = number
    profile  = optional(string)
  }))
  nullable = false

  validation {
    condition     = alltrue([for mtu in var.networks[*].mtu : mtu >= 1300 && mtu <= 8896 && floor(mtu) == mtu])
    error_message = "An MTU is a whole number of bytes from 1300 to 8896; received ${jsonencode(var.networks[*].mtu)}. 8896 would pass."
  }
  validation {
    condition     = alltrue([for nic_type in var.networks[*].nic_type : contains(["GVNIC", "MRDMA"], nic_type)])
    error_message = "An interface is of type GVNIC or MRDMA; received ${jsonencode(var.networks[*].nic_type)}. \"GVNIC\" would pass."
  }
  validation {
    condition     = alltrue([for network in var.networks : (network.profile != null) == (network.nic_type == "MRDMA")])
    error_message = "Networks for interfaces of type MRDMA, and they alone, have a profile; received ${jsonencode(var.networks)}. nic_type = \"MRDMA\" with profile = \"vpc-roce\" would pass."
  }
  validation {
    condition     = alltrue([for subnets in var.networks[*].subnets : subnets >= 1 && floor(subnets) == subnets])
    error_message = "A network has a whole number of subnetworks, 1 or more; received ${jsonencode(var.networks[*].subnets)}. 1 would pass."
  }
  validation {
    condition     = alltrue([for network in var.networks : network.subnets == 1 || network.nic_type == "MRDMA"])
    error_message = "Only interfaces of type MRDMA share a network, others are in one each; received ${jsonencode(var.networks)}. subnets = 1 would pass."
  }
  # More would be cut from outside the block.
  validation {
    condition     = sum(concat([0], var.networks[*].subnets)) <= 15
    error_message = "The block has room for 15 interfaces beside the first; received ${sum(concat([0], var.networks[*].subnets))} subnetworks. 8 would pass."
  }
}

variable "project_id" {
  description = "Project of the networks."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the subnetworks."
  type        = string
  nullable    = false
}

variable "zone" {
  description = "Zone of the VMs: Google has a network profile for each."
  type        = string
  nullable    = false
}
