provider "google" {
  project = var.project_id
  region  = local._region
  zone    = var.zone

  # Network, subnetworks, group, and back when they go: each waits for the one before. At
  # each of them half of the usual ten seconds would go by unused.
  poll_interval = "2s"

  # Labels are exactly those that this code writes: a template cannot be changed
  # in place, and its name is a hash of what this code writes.
  add_terraform_attribution_label = false
}
