# Each rule about the ports, seen refusing.

mock_provider "google" {}

variables {
  marker                = "aiinfra-cluster=3f9c2a71"
  name_prefix           = "train"
  network               = "projects/my-project/global/networks/default"
  ports                 = ["6379-6387", "8265"]
  project_id            = "my-project"
  service_account_email = "train-nodes@my-project.iam.gserviceaccount.com"
}

run "a_rule_without_ports_is_refused" {
  command = plan

  variables {
    ports = []
  }

  expect_failures = [var.ports]
}

run "a_port_that_is_no_number_is_refused" {
  command = plan

  variables {
    ports = ["ssh"]
  }

  expect_failures = [var.ports]
}

run "the_port_of_ssh_is_refused_in_a_range_too" {
  command = plan

  variables {
    ports = ["6379", "20-30"]
  }

  expect_failures = [var.ports]
}
