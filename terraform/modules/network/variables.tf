variable "existing" {
  description = "With the network_config existing, what is there and stays as it is: the network, as projects/P/global/networks/N, and its subnetwork, as projects/P/regions/R/subnetworks/S; and firewall rules to make: the start of the name, the network, the range that it lets in, and for each protocol the ports, none for all."
  type        = object({ network = string, subnetwork = string, rules = optional(list(object({ name = string, network = string, source = string, allow = list(object({ protocol = string, ports = list(string) })) })), []) })
  default     = null

  validation {
    condition     = (var.network_config == "existing") == (var.existing != null)
    error_message = "What exists is named with the network configuration existing and with no other; received ${jsonencode(var.existing)} with \"${var.network_config}\". null would pass with \"new_network\"."
  }
}

variable "ip_range" {
  description = "Range of the subnetwork of a new network, and the only source that its internal firewall rule trusts. At least one address per VM; a /16 has room for 65,532."
  type        = string
  default     = "10.0.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.ip_range)) ? cidrhost(var.ip_range, 0) == split("/", var.ip_range)[0] : false
    error_message = "A range is an IPv4 network address with its prefix length; received \"${var.ip_range}\". \"10.0.0.0/16\" would pass."
  }
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

variable "network_config" {
  description = "default_network: look up the network \"default\" and make nothing. existing: hand on what is named and make nothing. new_network: make a network."
  type        = string
  default     = "new_network"
  nullable    = false

  # Without this rule any other word would look up the default network.
  validation {
    condition     = contains(["default_network", "existing", "new_network"], var.network_config)
    error_message = "A network configuration is default_network, existing or new_network; received \"${var.network_config}\". \"new_network\" would pass."
  }
}

variable "project_id" {
  description = "Project of the network."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of subnetwork, router and NAT."
  type        = string
  nullable    = false
}

variable "secondary_ranges" {
  description = "Further ranges of the new subnetwork, by name, as GKE wants them for pods and services. They must not overlap ip_range, nor each other."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for range in values(var.secondary_ranges) : can(cidrnetmask(range)) ? cidrhost(range, 0) == split("/", range)[0] : false])
    error_message = "A range is an IPv4 network address with its prefix length; received ${jsonencode(var.secondary_ranges)}. { pods = \"10.16.0.0/12\" } would pass."
  }
  validation {
    condition     = length(var.secondary_ranges) == 0 || var.network_config == "new_network"
    error_message = "Only a subnetwork that is made here gets further ranges; received ${jsonencode(var.secondary_ranges)} with \"${var.network_config}\". \"new_network\" would pass, or {}."
  }
}
