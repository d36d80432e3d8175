variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`, written into the account's description."
  type        = string
  nullable    = false
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

variable "service_account" {
  description = "create = true makes an account with the least roles; else the given email is used as it is, or with none the project's default compute account."
  type = object({
    create = bool
    email  = optional(string)
  })
  nullable = false
}
