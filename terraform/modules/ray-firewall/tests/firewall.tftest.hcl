mock_provider "google" {}

run "a_deny_for_all_stands_under_an_allow_for_the_account" {
  command = plan

  assert {
    condition     = google_compute_firewall.allow.priority < google_compute_firewall.deny.priority
    error_message = "The allow has ${google_compute_firewall.allow.priority}, the deny ${google_compute_firewall.deny.priority}."
  }
  # 1000 is that of every rule which names none.
  assert {
    condition     = google_compute_firewall.deny.priority < 1000
    error_message = "The deny has ${google_compute_firewall.deny.priority}."
  }
  assert {
    condition     = google_compute_firewall.allow.source_service_accounts == toset([var.service_account_email])
    error_message = "The allow is for ${jsonencode(google_compute_firewall.allow.source_service_accounts)}."
  }
  assert {
    condition     = google_compute_firewall.deny.source_ranges == toset(["0.0.0.0/0"])
    error_message = "The deny is for ${jsonencode(google_compute_firewall.deny.source_ranges)}."
  }
  assert {
    condition = alltrue([
      for rule in [google_compute_firewall.allow, google_compute_firewall.deny] :
      rule.target_service_accounts == toset([var.service_account_email]) && rule.description == var.marker
    ])
    error_message = "A rule has another target, or another description."
  }
}

run "both_are_for_exactly_the_ports" {
  command = plan

  assert {
    condition     = one(google_compute_firewall.allow.allow).ports == var.ports && one(google_compute_firewall.deny.deny).ports == var.ports
    error_message = "Allowed is ${jsonencode(google_compute_firewall.allow.allow)}, denied ${jsonencode(google_compute_firewall.deny.deny)}."
  }
}

run "another_network_has_other_names" {
  command = plan

  variables {
    network = "projects/my-project/global/networks/train-net-12345678"
  }

  assert {
    condition     = output.rules.deny == "train-ray-deny-${substr(sha256("train-net-12345678"), 0, 8)}"
    error_message = "The rules are ${jsonencode(output.rules)}."
  }
}

run "slurms_rules_have_names_of_their_own" {
  command = plan

  variables {
    word = "slurm"
  }

  assert {
    condition     = output.rules.allow == "train-slurm-allow-${substr(sha256("default"), 0, 8)}"
    error_message = "The rules are ${jsonencode(output.rules)}."
  }
}

run "refuses_to_shut_out_all" {
  command = plan

  variables {
    ports = []
  }

  expect_failures = [var.ports]
}

run "refuses_to_shut_out_ssh" {
  command = plan

  variables {
    ports = ["20-30"]
  }

  expect_failures = [var.ports]
}
