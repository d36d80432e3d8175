provider "google" {
  project = var.project_id
  region  = var.region
  zone    = var.zone

  # Labels are exactly those that this code writes, as in the other root.
  add_terraform_attribution_label = false
}
