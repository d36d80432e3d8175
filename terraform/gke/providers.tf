provider "google" {
  project = var.project_id
  region  = local._region
  zone    = var.zone

  # One thing waits for another here: network, cluster, pools. At each of them half of
  # the usual ten seconds would go by unused.
  poll_interval = "2s"

  # Labels are exactly those that this code writes, as in the other root.
  add_terraform_attribution_label = false
}
