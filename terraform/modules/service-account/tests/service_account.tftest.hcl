mock_provider "google" {
  mock_data "google_compute_default_service_account" {
    defaults = { email = "123-compute@developer.gserviceaccount.com" }
  }
}

variables {
  marker          = "aiinfra-cluster=3f9c2a71"
  name_prefix     = "train"
  project_id      = "my-project"
  service_account = { create = true }
}

run "an_account_of_its_own_is_known_before_it_is_made_and_may_write_logs_and_metrics_only" {
  command = plan

  assert {
    condition     = google_service_account.nodes[0].account_id == "train-nodes" && google_service_account.nodes[0].description == "aiinfra-cluster=3f9c2a71"
    error_message = "It is ${jsonencode([google_service_account.nodes[0].account_id, google_service_account.nodes[0].description])}."
  }
  assert {
    condition     = length(data.google_compute_default_service_account.project) == 0
    error_message = "The default account is looked up."
  }
  assert {
    condition = alltrue([
      toset([for binding in google_project_iam_member.nodes : binding.role]) == toset(["roles/logging.logWriter", "roles/monitoring.metricWriter"]),
      alltrue([for binding in google_project_iam_member.nodes : binding.member == "serviceAccount:train-nodes@my-project.iam.gserviceaccount.com"]),
    ])
    error_message = "It is ${jsonencode([[for binding in google_project_iam_member.nodes : binding.role], [for binding in google_project_iam_member.nodes : binding.member]])}."
  }
  assert {
    condition     = output.email == "train-nodes@my-project.iam.gserviceaccount.com"
    error_message = "The email is ${output.email}."
  }
}

run "the_email_of_a_domain_scoped_project_ends_with_its_domain" {
  command = plan

  variables {
    project_id = "example.com:my-project"
  }

  assert {
    condition     = output.email == "train-nodes@my-project.example.com.iam.gserviceaccount.com"
    error_message = "The email is ${output.email}."
  }
}

run "a_given_account_is_used_and_gets_no_roles" {
  command = plan

  variables {
    service_account = { create = false, email = "team@other-project.iam.gserviceaccount.com" }
  }

  assert {
    condition     = output.email == "team@other-project.iam.gserviceaccount.com"
    error_message = "The email is ${output.email}."
  }
  assert {
    condition     = length(google_service_account.nodes) + length(google_project_iam_member.nodes) == 0
    error_message = "Something is made."
  }
}

run "without_an_account_the_default_one_of_the_project_is_used" {
  command = plan

  variables {
    service_account = { create = false }
  }

  assert {
    condition     = output.email == "123-compute@developer.gserviceaccount.com"
    error_message = "The email is ${output.email}."
  }
  assert {
    condition     = length(google_service_account.nodes) + length(google_project_iam_member.nodes) == 0
    error_message = "Something is made."
  }
}

run "an_account_of_another_kind_has_its_own_id_and_roles" {
  command = plan

  variables {
    account = { suffix = "workload", bearer = "Pods", roles = ["roles/logging.logWriter"] }
  }

  assert {
    condition     = google_service_account.nodes[0].account_id == "train-workload" && google_service_account.nodes[0].display_name == "Pods of the cluster train"
    error_message = "The account is ${jsonencode(google_service_account.nodes[0])}."
  }
  assert {
    condition     = [for binding in google_project_iam_member.nodes : "${binding.role} ${binding.member}"] == ["roles/logging.logWriter serviceAccount:train-workload@my-project.iam.gserviceaccount.com"]
    error_message = "The roles are ${jsonencode(google_project_iam_member.nodes)}."
  }
}

run "an_account_of_its_own_may_read_the_secrets_that_are_named_and_no_others" {
  command = plan

  variables {
    secrets = ["hf-token", "key"]
  }

  override_data {
    target = data.google_project.secrets[0]
    values = { number = "123456789012" }
  }

  assert {
    condition = alltrue([
      { for name, member in google_project_iam_member.secrets : name => member.condition[0].expression } == {
        hf-token = "resource.name.startsWith(\"projects/123456789012/secrets/hf-token/\")"
        key      = "resource.name.startsWith(\"projects/123456789012/secrets/key/\")"
      },
      alltrue([for member in google_project_iam_member.secrets : member.role == "roles/secretmanager.secretAccessor" && member.member == "serviceAccount:train-nodes@my-project.iam.gserviceaccount.com"]),
    ])
    error_message = "It is ${jsonencode([[for member in google_project_iam_member.secrets : member.condition], [for member in google_project_iam_member.secrets : [member.role, member.member]]])}."
  }
}

run "a_given_account_gets_no_access_to_secrets" {
  command = plan

  variables {
    secrets         = ["hf-token"]
    service_account = { create = false, email = "team@my-project.iam.gserviceaccount.com" }
  }

  assert {
    condition     = length(google_project_iam_member.secrets) == 0
    error_message = "The owner of a given account decides what it may read."
  }
}
