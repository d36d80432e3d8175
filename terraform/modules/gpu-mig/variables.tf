variable "boot_disk" {
  description = "Boot disk of each VM: size in GiB, at least the image's, and type."
  type = object({
    size_gb = number
    type    = string
  })
  nullable = false
}

variable "cluster_id" {
  description = "Value of the marker `aiinfra-cluster`: a label of template, VMs and disks, and in the descriptions."
  type        = string
  nullable    = false
}

variable "group" {
  description = "The VMs: how many, machine type, GPUs to attach where the machine type brings none, metadata (its keys win over the module's), and whether each gets an external IP."
  type = object({
    instance_count = number
    machine_type   = string
    gpu            = optional(object({ type = string, count = number }))
    metadata       = map(string)
    external_ip    = bool
  })
  nullable = false
}

variable "image" {
  description = "What VMs boot: the project that serves it, and exactly one of family (its newest image at each plan) and name."
  type = object({
    project = string
    family  = optional(string)
    name    = optional(string)
  })
  nullable = false
}

variable "interfaces" {
  description = "Each VM's network interfaces, nic0 first: type, and subnetwork as projects/P/regions/R/subnetworks/S. The first has the external IP, if any. Must be known at plan, as the template's name depends on it."
  type = list(object({
    nic_type   = string
    subnetwork = string
  }))
  nullable = false
}

variable "labels" {
  description = "Labels of template, VMs and disks beside the marker, which wins."
  type        = map(string)
  nullable    = false
}

variable "name_prefix" {
  description = "Start of every name that is made; at most 54 characters."
  type        = string
  nullable    = false
}

variable "project_id" {
  description = "Project of template and group."
  type        = string
  nullable    = false
}

variable "region" {
  description = "Region of the subnetwork and of the zone."
  type        = string
  nullable    = false
}

variable "service_account_email" {
  description = "The account that the VMs act as. Its email must be known at plan, as the template's name depends on it."
  type        = string
  nullable    = false
}

variable "zone" {
  description = "Zone of the VMs."
  type        = string
  nullable    = false
}
