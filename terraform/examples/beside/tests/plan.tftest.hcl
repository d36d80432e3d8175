mock_provider "google" {}

override_data {
  target = data.terraform_remote_state.cluster
  values = {
    outputs = {
      ids                   = { service_account = "projects/my-project/serviceAccounts/a@my-project.iam.gserviceaccount.com" }
      service_account_email = "a@my-project.iam.gserviceaccount.com"
    }
  }
}

run "the_account_that_the_state_tells_gets_the_roles" {
  command = plan

  assert {
    condition     = google_storage_bucket_iam_member.results.member == "serviceAccount:a@my-project.iam.gserviceaccount.com"
    error_message = "It is ${google_storage_bucket_iam_member.results.member}."
  }

  assert {
    condition     = endswith(google_service_account_iam_member.team.service_account_id, "/serviceAccounts/a@my-project.iam.gserviceaccount.com")
    error_message = "It is ${google_service_account_iam_member.team.service_account_id}."
  }
}
