# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  pool   = { machine_type = "a3-ultragpu-8g", zone = "us-central1-b", gpu = { type = "nvidia-h200-141gb", count = 8, driver = "DEFAULT" }, capacity = { model = "standard" }, size = { count = 2 }, disk = { size_gb = 100, type = "hyperdisk-balanced" }, local_ssds = 32, compact = false, gpu_networks = null }
  rdma   = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }, { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }]
  labels = {}
}

refuses = {
  a_cluster_in_another_region                      = { cluster = merge(var.cluster, { location = "us-east1" }), system_pool = merge(var.system_pool, { zone = "us-east1-b" }) }
  a_pool_of_the_system_pools_name                  = { node_pools = { train-system = var.pool } }
  networks_that_no_pool_asks_for                   = { node_pools = { train-a = var.pool }, gpu_networks = var.rdma }
  a_pool_that_asks_for_networks_that_are_not_there = { node_pools = { train-a = merge(var.pool, { gpu_networks = "rdma" }) } }
  more_networks_that_no_pool_asks_for              = { node_pools = { train-a = var.pool }, more_gpu_networks = { tcpx = [{ mtu = 8244, nic_type = "GVNIC", subnets = 1 }] } }
  a_kind_that_is_no_part_of_a_name                 = { more_gpu_networks = { TCPX = [{ mtu = 8244, nic_type = "GVNIC", subnets = 1 }] }, node_pools = { train-a = merge(var.pool, { gpu_networks = "TCPX" }) } }
  rdma_in_two_zones                                = { node_pools = { train-a = merge(var.pool, { gpu_networks = "rdma" }), train-b = merge(var.pool, { zone = "us-central1-c", gpu_networks = "rdma" }) }, gpu_networks = var.rdma }
  a_bucket_and_a_share_at_one_path                 = { gcs_mounts = [{ bucket = "my-data", path = "/mnt/a" }], filestores = [{ path = "/mnt/a", tier = "BASIC_SSD", size_gb = 2560, location = "us-central1-a" }] }
  a_state_folder_without_a_name                    = { state_folder = { bucket = "my-state", folder = "" } }
  a_marker_that_is_no_label_value                  = { cluster_id = "3F9C", marker = "aiinfra-cluster=3F9C" }
  a_label_key_in_upper_case                        = { labels = { Team = "ml" } }
  a_label_value_with_a_dot                         = { labels = { team = "ml.research" } }
  too_many_labels_beside_the_marker                = { labels = { for number in range(64) : "label-${number}" => "value" } }
  a_label_that_is_the_marker                       = { labels = { aiinfra-cluster = "mine" } }
  a_name_prefix_of_22_characters                   = { name_prefix = "abcdefghijklmnopqrstuv" }
  a_project_id_in_upper_case                       = { project_id = "My-Project" }
  a_zone_as_region                                 = { region = "us-central1-a", cluster = merge(var.cluster, { location = "us-central1-a" }), system_pool = merge(var.system_pool, { zone = "us-central1-a-a" }), zone = "us-central1-a-a" }
  an_email_for_an_account_that_is_made             = { service_account = { create = true, email = "nodes@my-project.iam.gserviceaccount.com" } }
  a_person_as_service_account                      = { service_account = { create = false, email = "someone@example.com" } }
  a_zone_of_another_region                         = { zone = "us-east1-b" }
  a_marker_of_another_cluster                      = { marker = "aiinfra-cluster=00000000 gs://bucket/np-deployment" }
  networks_of_gke_beside_ours                      = { node_pools = { train-a = merge(var.pool, { gpu_networks = "rdma" }), train-b = merge(var.pool, { managed_rdma = true }) }, gpu_networks = var.rdma }
  networks_for_gpus_beside_a_network_that_exists   = { existing = { network = "projects/my-host/global/networks/my-vpc", subnetwork = "projects/my-host/regions/us-central1/subnetworks/nodes" }, gpu_networks = var.rdma, node_pools = { train-a = merge(var.pool, { gpu_networks = "rdma" }) } }
}

accepts = {
  rdma_in_one_zone_beside_other_pools = { gpu_networks = var.rdma, node_pools = { train-a = merge(var.pool, { gpu_networks = "rdma" }), train-b = merge(var.pool, { zone = "us-central1-c" }) } }
  a_name_prefix_of_21_characters      = { name_prefix = "abcdefghijklmnopqrstu" }
}
