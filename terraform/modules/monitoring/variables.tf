variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`: by this label of VMs the dashboard finds its own, and the dashboard carries it too; by default name_prefix."
  type        = string
  default     = null
}

variable "name_prefix" {
  description = "The cluster's name in the dashboard's title."
  type        = string
  nullable    = false
}

variable "project_id" {
  description = "Project of the VMs and the dashboard."
  type        = string
  nullable    = false
}
