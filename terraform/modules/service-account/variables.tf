# The default is what the Ops Agent of a VM needs; whatever a workload needs is its
# owner's to grant.
variable "account" {
  description = "The account that is made: what its id ends with, who acts as it, and its roles in the project."
  type = object({
    suffix = string
    bearer = string
    roles  = set(string)
  })
  default = {
    suffix = "nodes"
    bearer = "VMs"
    roles  = ["roles/logging.logWriter", "roles/monitoring.metricWriter"]
  }
  nullable = false
}

variable "marker" {
  description = "Description of all that is made: the marker `aiinfra-cluster=ID`, and where the state is; by default `aiinfra-cluster=` and name_prefix."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "Start of the account's id; with \"-nodes\" it has at most 30 characters."
  type        = string
  nullable    = false
}

variable "project_id" {
  description = "Project of the account and of its roles."
  type        = string
  nullable    = false
}

variable "secrets" {
  description = "Secrets of the project, by name, that the account may read, if it is made here."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "service_account" {
  description = "create = true makes an account with the least roles; else the given email is used as it is, or with none the project's default compute account."
  type = object({
    create = optional(bool, false)
    email  = optional(string)
  })
  default  = { create = true }
  nullable = false
}
