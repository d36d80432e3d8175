output "email" {
  description = "The account's email; known at plan. Its roles are granted when this is ready."
  value       = local._email
  depends_on  = [google_project_iam_member.nodes, google_project_iam_member.secrets]
}
