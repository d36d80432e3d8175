output "rules" {
  description = "The names of both rules, allow and deny."
  value = {
    allow = google_compute_firewall.allow.name
    deny  = google_compute_firewall.deny.name
  }
}
