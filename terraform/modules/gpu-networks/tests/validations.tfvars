# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  gvnic = { mtu = 8896, nic_type = "GVNIC", subnets = 1 }
  rdma  = { mtu = 8896, nic_type = "MRDMA", subnets = 8, profile = "vpc-roce" }
}

refuses = {
  a_block_with_host_bits                             = { ip_block = "10.1.0.0/12" }
  a_block_that_is_an_address                         = { ip_block = "10.0.0.0" }
  a_block_whose_parts_are_too_small_for_a_subnetwork = { ip_block = "10.0.0.0/26", networks = [var.gvnic] }
  an_mtu_that_no_network_carries                     = { networks = [merge(var.gvnic, { mtu = 9000 })] }
  an_unknown_type_of_interface                       = { networks = [merge(var.gvnic, { nic_type = "VIRTIO_NET" })] }
  a_network_for_rdma_without_a_profile               = { networks = [{ mtu = 8896, nic_type = "MRDMA", subnets = 8 }] }
  a_profile_for_rdma_with_another_type_of_interface  = { networks = [merge(var.gvnic, { profile = "vpc-roce" })] }
  a_network_without_subnetworks                      = { networks = [merge(var.rdma, { subnets = 0 })] }
  interfaces_that_share_a_network_without_rdma       = { networks = [merge(var.gvnic, { subnets = 2 })] }
  more_interfaces_than_the_block_has_room_for        = { networks = [var.rdma, var.rdma] }
}

accepts = {
  the_smallest_block                = { ip_block = "10.0.0.0/25" }
  a_second_network_and_one_for_rdma = { networks = [var.gvnic, var.rdma] }
}
