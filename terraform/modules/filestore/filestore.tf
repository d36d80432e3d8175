locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)
  _marker     = coalesce(var.marker, "aiinfra-cluster=${local._cluster_id}")

  _share = "share"

  # Google peers a network of the instances' own project. One of another project, a Shared VPC, must
  # have private services access, which is its owner's to set up.
  _connect_mode = startswith(var.network, "projects/${var.project_id}/") ? "DIRECT_PEERING" : "PRIVATE_SERVICE_ACCESS"

  _shares = { for share in var.filestores : share.path => share }

  # What cannot be changed in place is in the name, so that a replacement can be
  # made before the old one goes, and so that whoever knows the name knows which
  # address is meant.
  _names = {
    for path, share in local._shares : path =>
    "${var.name_prefix}-nfs-${substr(sha256(jsonencode([path, share.tier, share.location, var.network])), 0, 8)}"
  }
}

resource "google_filestore_instance" "shares" {
  for_each = local._shares

  name         = local._names[each.key]
  project      = var.project_id
  location     = each.value.location
  tier         = each.value.tier
  description  = local._marker
  labels       = merge(var.labels, { aiinfra-cluster = local._cluster_id })
  kms_key_name = each.value.kms_key

  file_shares {
    name        = local._share
    capacity_gb = each.value.size_gb
  }

  networks {
    network      = var.network
    modes        = ["MODE_IPV4"]
    connect_mode = local._connect_mode
  }

  lifecycle {
    # A share keeps the name and the key that it was made with, and with them its data.
    ignore_changes = [kms_key_name, name]
  }
}
