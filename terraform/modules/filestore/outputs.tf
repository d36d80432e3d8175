locals {
  # One client reaches a share's bandwidth over several connections alone: up to 7 for the tiers with
  # many servers, 2 for others (Filestore, "About instance performance").
  _connections = { HIGH_SCALE_SSD = 7, ZONAL = 7 }

  # By path, all of the contract but the address, which Google chooses.
  _contract = {
    for share in var.filestores : share.path => {
      remote_path = "/${local._share}"
      local_mount = share.path
      type        = "nfs"
      # All tiers speak version 3. A program waits for the server, however long
      # that takes, rather than lose what it writes.
      options = "nfsvers=3,hard,timeo=600,retrans=3,nconnect=${lookup(local._connections, share.tier, 2)}"
    }
  }
}

output "filestores" {
  description = "The instances, in order of `filestores`: name, location, tier, ip, share (what it exports) and path (where VMs mount it)."
  value = [
    for path in var.filestores[*].path : {
      ip       = google_filestore_instance.shares[path].networks[0].ip_addresses[0]
      location = google_filestore_instance.shares[path].location
      name     = google_filestore_instance.shares[path].name
      path     = path
      share    = "/${local._share}"
      tier     = google_filestore_instance.shares[path].tier
    }
  ]
}

output "ids" {
  description = "The instances' ids, projects/P/locations/L/instances/N, by path."
  value       = { for path, share in google_filestore_instance.shares : path => share.id }
}

output "mounts" {
  description = "The shares as a list of the storage contract: server (an IP address, known after apply), remote_path, local_mount, type and options, in order of `filestores`."
  value = [
    for path in var.filestores[*].path : merge(local._contract[path], {
      server = google_filestore_instance.shares[path].networks[0].ip_addresses[0]
    })
  ]
}

output "named_mounts" {
  description = "The same with the instance's name, which is known at plan, in place of its address: for a content that is compared before the instance is there."
  value = [
    for path in var.filestores[*].path : merge(local._contract[path], { server = google_filestore_instance.shares[path].name })
  ]
}
