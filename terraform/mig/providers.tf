provider "google" {
  project = var.project_id
  region  = var.region
  zone    = var.zone

  # Labels are exactly those that this code writes: a template cannot be changed
  # in place, and its name is a hash of what this code writes.
  add_terraform_attribution_label = false
}
