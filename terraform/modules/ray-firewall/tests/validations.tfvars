# Rows of tests/terraform/test_validations.py, which says how they are read.

given = {
  ports = ["6379-6387", "8265"]
  word  = "slurm"
}

refuses = {
  another_word                   = { word = "mpi" }
  a_rule_without_ports           = { ports = [] }
  a_port_that_is_no_number       = { ports = ["ssh"] }
  the_port_of_ssh_in_a_range_too = { ports = ["6379", "20-30"] }
}
