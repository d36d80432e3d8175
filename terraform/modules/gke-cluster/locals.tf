locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)
  _marker     = coalesce(var.marker, "aiinfra-cluster=${local._cluster_id}")

  _labels        = merge(var.labels, { aiinfra-cluster = local._cluster_id })
  _workload_pool = "${var.project_id}.svc.id.goog"
  _is_open       = length(var.cluster.authorized_cidrs) > 0
  _oauth_scopes  = ["https://www.googleapis.com/auth/cloud-platform"]

  # Google's floor for the Ray operator; versions as numbers, to compare them.
  _floor = "1.29.8-gke.1054000"
  _numbers = {
    for name, version in { chosen = var.cluster.version, floor = local._floor } : name => sum([
      for index, part in regex("^1\\.([0-9]+)\\.([0-9]+)-gke\\.([0-9]+)", version) :
      tonumber(part) * pow(10, [14, 10, 0][index])
    ]) if version != null
  }
}
