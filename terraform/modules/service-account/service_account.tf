locals {
  _marker = coalesce(var.marker, "aiinfra-cluster=${var.name_prefix}")

  _is_default = !var.service_account.create && var.service_account.email == null

  # The domain of the account's address. A domain-scoped project turns around:
  # example.com:my-project has my-project.example.com.iam.gserviceaccount.com.
  _domain = "${join(".", reverse(split(":", var.project_id)))}.iam.gserviceaccount.com"

  # Composed, not read back: a plan knows it before the account is made.
  _made  = [for account in google_service_account.nodes : "${account.account_id}@${local._domain}"]
  _given = compact([var.service_account.email])
  _email = one(concat(local._made, local._given, data.google_compute_default_service_account.project[*].email))

  _secrets = var.service_account.create ? var.secrets : []
}

data "google_compute_default_service_account" "project" {
  count = local._is_default ? 1 : 0

  project = var.project_id
}

resource "google_service_account" "nodes" {
  count = var.service_account.create ? 1 : 0

  account_id   = "${var.name_prefix}-${var.account.suffix}"
  project      = var.project_id
  display_name = "${var.account.bearer} of the cluster ${var.name_prefix}"
  description  = local._marker
}

resource "google_project_iam_member" "nodes" {
  for_each = var.service_account.create ? var.account.roles : []

  project = var.project_id
  role    = each.value
  member  = "serviceAccount:${local._email}"
}

# Secret Manager's names have the project's number.
data "google_project" "secrets" {
  count = length(local._secrets) > 0 ? 1 : 0

  project_id = var.project_id
}

# By a condition in the project's policy, so that whoever may not change a secret's own
# can grant it, and no policy of a secret is left behind.
resource "google_project_iam_member" "secrets" {
  for_each = local._secrets

  project = var.project_id
  role    = "roles/secretmanager.secretAccessor"
  member  = "serviceAccount:${local._email}"

  condition {
    title       = "secret ${each.value}"
    description = local._marker
    expression  = "resource.name.startsWith(\"projects/${data.google_project.secrets[0].number}/secrets/${each.value}/\")"
  }
}
