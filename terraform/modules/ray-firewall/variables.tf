variable "marker" {
  description = "Description of both rules: the marker `aiinfra-cluster=ID`, and where the state is; by default `aiinfra-cluster=` and name_prefix."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "Start of both names."
  type        = string
  nullable    = false
}

variable "network" {
  description = "The network of the VMs' first interface, as projects/P/global/networks/N."
  type        = string
  nullable    = false
}

variable "ports" {
  description = "The TCP ports that Ray or Slurm listens on: numbers and ranges, as a rule has them."
  type        = list(string)
  nullable    = false

  # A rule without ports would shut out ssh, too.
  validation {
    condition     = length(var.ports) > 0 && alltrue([for port in var.ports : can(regex("^[0-9]{1,5}(-[0-9]{1,5})?$", port))])
    error_message = "Ports are numbers or ranges, one at least; received ${jsonencode(var.ports)}. [\"6379-6387\", \"8265\"] would pass."
  }
  validation {
    condition = !anytrue([
      for port in var.ports : try(tonumber(split("-", port)[0]) <= 22 && tonumber(reverse(split("-", port))[0]) >= 22, false)
    ])
    error_message = "Port 22 is ssh's, which stays as it is; received ${jsonencode(var.ports)}. [\"6379-6387\", \"8265\"] would pass."
  }
}

variable "project_id" {
  description = "Project of the network."
  type        = string
  nullable    = false
}

variable "service_account_email" {
  description = "The account that the VMs act as, and no machine that Ray or Slurm should not trust."
  type        = string
  nullable    = false
}

variable "word" {
  description = "What listens there, in both names."
  type        = string
  default     = "ray"
  nullable    = false

  validation {
    condition     = contains(["ray", "slurm"], var.word)
    error_message = "Rules are for ray or slurm; received \"${var.word}\". \"ray\" would pass."
  }
}
