module "service_account" {
  source = "../modules/service-account"

  marker          = local._marker
  name_prefix     = var.name_prefix
  project_id      = var.project_id
  secrets         = toset([for secret in var.secrets : secret.secret if secret.project == var.project_id])
  service_account = var.service_account
}
