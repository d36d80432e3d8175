output "email" {
  description = "The account's email; known at plan. Its roles are granted when this is ready."
  value       = local._email
  depends_on  = [google_project_iam_member.nodes, google_project_iam_member.secrets]
}

output "member" {
  description = "The account as a role's member, serviceAccount:EMAIL."
  value       = "serviceAccount:${local._email}"
}

output "name" {
  description = "The account as other resources name it, projects/P/serviceAccounts/EMAIL; null where it is not made here."
  value       = one(google_service_account.nodes[*].name)
}
