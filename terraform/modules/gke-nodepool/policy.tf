locals {
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.cluster_id}")

  # Standard nodes are placed compactly by the pool itself; those of flex start by a
  # workload policy, the only one that Google takes there.
  _has_policy = var.pool.compact && local._is_flex
}

resource "google_compute_resource_policy" "compact" {
  count = local._has_policy ? 1 : 0

  name        = "${var.name}-compact"
  project     = var.project_id
  region      = coalesce(var.region, regex("^[a-z]+-[a-z]+[0-9]+", var.pool.zone))
  description = local._marker

  workload_policy {
    type = "HIGH_THROUGHPUT"
  }

  lifecycle {
    # Written once: the provider sends a changed policy whole, and Google changes none
    # that is in use.
    ignore_changes = [description]
  }
}
