mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = { master_version = "1.35.7-gke.1222000" }
  }
}

run "the_pool_joins_the_cluster_that_is_made" {
  command = apply

  assert {
    condition     = output.cluster.name == "train-gke" && output.pool.name == "train-l4" && output.pool.zone == "us-central1-a"
    error_message = "It is ${jsonencode([output.cluster, output.pool])}."
  }
}
