# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  group  = { instance_count = 1, machine_type = "a2-highgpu-2g", external_ip = false }
  labels = {}
}

refuses = {
  a_boot_disk_of_less_than_10_gib                     = { boot_disk = { size_gb = 9, type = "pd-ssd" } }
  a_boot_disk_of_more_than_65536_gib                  = { boot_disk = { size_gb = 65537, type = "pd-ssd" } }
  a_boot_disk_of_half_a_gib                           = { boot_disk = { size_gb = 100.5, type = "pd-ssd" } }
  a_local_ssd_as_boot_disk                            = { boot_disk = { size_gb = 375, type = "local-ssd" } }
  a_marker_that_is_no_label_value                     = { cluster_id = "3F9C", marker = "aiinfra-cluster=3F9C" }
  an_empty_marker                                     = { cluster_id = "" }
  a_group_of_no_vms                                   = { group = merge(var.group, { instance_count = 0 }) }
  a_group_of_half_a_vm                                = { group = merge(var.group, { instance_count = 1.5 }) }
  a_machine_type_that_is_a_url                        = { group = merge(var.group, { machine_type = "zones/us-central1-a/machineTypes/a2-highgpu-2g" }) }
  gpus_attached_to_a_machine_type_that_brings_its_own = { group = merge(var.group, { gpu = { type = "nvidia-tesla-t4", count = 1 } }) }
  an_n1_machine_type_without_gpus                     = { group = merge(var.group, { machine_type = "n1-standard-8" }) }
  no_gpus_for_an_n1_machine_type                      = { group = merge(var.group, { machine_type = "n1-standard-8", gpu = { type = "nvidia-tesla-t4", count = 0 } }) }
  a_metadata_key_with_a_blank                         = { metadata = { "my key" = "value" } }
  an_image_by_family_and_by_name                      = { image = { project = "images", family = "pytorch", name = "pytorch-v1" } }
  an_image_by_neither_family_nor_name                 = { image = { project = "images" } }
  a_label_key_in_upper_case                           = { labels = { Team = "ml" } }
  a_label_key_of_64_characters                        = { labels = { (join("", [for _ in range(64) : "a"])) = "ml" } }
  a_label_value_with_a_dot                            = { labels = { team = "ml.research" } }
  too_many_labels_beside_the_marker                   = { labels = { for number in range(64) : "label-${number}" => "value" } }
  a_label_that_is_the_marker                          = { labels = { aiinfra-cluster = "mine" } }
  a_name_prefix_of_25_characters                      = { name_prefix = "abcdefghijklmnopqrstuvwxy" }
  a_name_prefix_that_starts_with_a_digit              = { name_prefix = "1train" }
  a_name_prefix_that_ends_with_a_hyphen               = { name_prefix = "train-" }
  several_networks_without_saying_which               = { network_config = "multi_nic_network" }
  gpu_networks_where_there_are_none                   = { network_config = var.network_config, gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }] }
  an_existing_network_without_saying_which            = { network_config = "existing" }
  an_unknown_network_configuration                    = { network_config = "my_network" }
  a_project_id_in_upper_case                          = { project_id = "My-Project" }
  a_project_number                                    = { project_id = "123456789012" }
  a_zone_as_region                                    = { region = "us-central1-a", zone = "us-central1-a-a" }
  an_email_for_an_account_that_is_made                = { service_account = { create = true, email = "nodes@my-project.iam.gserviceaccount.com" } }
  a_person_as_service_account                         = { service_account = { create = false, email = "someone@example.com" } }
  the_whole_bucket_as_the_deployments_folder          = { state_folder = { bucket = "state", folder = "" } }
  a_zone_of_another_region                            = { zone = "us-east1-b" }
  a_region_as_zone                                    = { zone = "us-central1" }
  a_zone_without_an_ending                            = { zone = "us-central1-" }
  a_marker_of_another_cluster                         = { marker = "aiinfra-cluster=00000000 gs://bucket/np-deployment" }
}

accepts = {
  several_networks                        = { gpu_networks = [{ mtu = 8896, nic_type = "GVNIC", subnets = 1 }], network_config = "multi_nic_network" }
  a_zone_of_the_ai_form                   = { zone = "us-central1-ai1a" }
  a_domain_scoped_project                 = { project_id = "example.com:my-project" }
  labels_in_other_scripts                 = { labels = { "équipe" = "запуск" } }
  a_name_prefix_of_24_characters          = { name_prefix = "abcdefghijklmnopqrstuvwx" }
  the_greatest_boot_disk                  = { boot_disk = { size_gb = 65536, type = "hyperdisk-balanced" } }
  as_many_labels_as_fit_beside_the_marker = { labels = { for number in range(63) : "label-${number}" => "" } }
}
