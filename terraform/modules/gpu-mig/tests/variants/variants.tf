# The module under test once, and once more for each thing that can be changed, so
# that one plan shows all their names.

locals {
  _account    = "train-nodes@my-project.iam.gserviceaccount.com"
  _capacity   = { model = "standard", reservation = null, max_run_seconds = null, compact = false }
  _flex       = merge(local._capacity, { model = "flex_start", max_run_seconds = 86400 })
  _group      = { instance_count = 2, machine_type = "a2-highgpu-2g", gpu = null, external_ip = false }
  _subnets    = "projects/my-project/regions/us-central1/subnetworks"
  _interface  = { nic_type = "GVNIC", subnetwork = "${local._subnets}/train-primary-subnet" }
  _interfaces = [for name in ["a", "b"] : { nic_type = "GVNIC", subnetwork = "${local._subnets}/${name}" }]

  _first = {
    boot_disk  = { size_gb = 2000, type = "pd-ssd" }
    capacity   = local._capacity
    cluster_id = "3f9c2a71"
    marker     = "aiinfra-cluster=3f9c2a71"
    identity   = { startup-script = "true" }
    metadata   = { startup-script = "true" }
    requests   = {}
    group      = local._group
    interfaces = [local._interface]
    labels     = {}
    account    = local._account
    users      = {}
    zone       = "us-central1-a"
  }

  _variants = {
    the_first         = local._first
    the_same_again    = local._first
    another_size      = merge(local._first, { group = merge(local._group, { instance_count = 9 }) })
    another_zone      = merge(local._first, { zone = "us-central1-b" })
    another_address   = merge(local._first, { metadata = { startup-script = "false" } })
    account           = merge(local._first, { account = "team@my-project.iam.gserviceaccount.com" })
    attached_gpus     = merge(local._first, { group = merge(local._group, { gpu = { type = "nvidia-tesla-t4", count = 1 } }) })
    boot_disk_size    = merge(local._first, { boot_disk = { size_gb = 1000, type = "pd-ssd" } })
    boot_disk_type    = merge(local._first, { boot_disk = { size_gb = 2000, type = "pd-balanced" } })
    compact           = merge(local._first, { capacity = merge(local._capacity, { compact = true }) })
    external_ip       = merge(local._first, { group = merge(local._group, { external_ip = true }) })
    flex_start        = merge(local._first, { capacity = local._flex })
    flex_start_by_day = merge(local._first, { capacity = merge(local._flex, { max_run_seconds = 43200 }) })
    labels            = merge(local._first, { labels = { team = "ml" } })
    machine_type      = merge(local._first, { group = merge(local._group, { machine_type = "a2-highgpu-4g" }) })
    marker            = merge(local._first, { cluster_id = "00000000" })
    metadata          = merge(local._first, { users = { purpose = "training" } })
    more_gpus         = merge(local._first, { group = merge(local._group, { gpu = { type = "nvidia-tesla-t4", count = 2 } }) })
    other_interface   = merge(local._first, { interfaces = [merge(local._interface, { nic_type = "MRDMA" })] })
    other_order       = merge(local._first, { interfaces = concat([local._interface], reverse(local._interfaces)) })
    other_subnetwork  = merge(local._first, { interfaces = [merge(local._interface, { subnetwork = "${local._subnets}/default" })] })
    reservation       = merge(local._first, { capacity = merge(local._capacity, { model = "reservation", reservation = "mine" }) })
    other_reservation = merge(local._first, { capacity = merge(local._capacity, { model = "reservation", reservation = "yours" }) })
    run_duration      = merge(local._first, { capacity = merge(local._capacity, { max_run_seconds = 86400 }) })
    several_networks  = merge(local._first, { interfaces = concat([local._interface], local._interfaces) })
    spot              = merge(local._first, { capacity = merge(local._capacity, { model = "spot" }) })
    startup           = merge(local._first, { identity = { startup-script = "false" } })
    users_own_oslogin = merge(local._first, { users = { enable-oslogin = "FALSE" } })
  }
}

module "variant" {
  source   = "../.."
  for_each = local._variants

  boot_disk             = each.value.boot_disk
  capacity              = each.value.capacity
  cluster_id            = each.value.cluster_id
  marker                = "aiinfra-cluster=${each.value.cluster_id}"
  group                 = each.value.group
  image                 = { project = "images", family = "pytorch" }
  interfaces            = each.value.interfaces
  labels                = each.value.labels
  metadata              = each.value.metadata
  metadata_identity     = each.value.identity
  name_prefix           = "train"
  project_id            = "my-project"
  region                = "us-central1"
  resize_requests       = each.value.requests
  service_account_email = each.value.account
  users_metadata        = each.value.users
  zone                  = each.value.zone
}

output "names" {
  value = { for variant, made in module.variant : variant => made.group.instance_template }
}
