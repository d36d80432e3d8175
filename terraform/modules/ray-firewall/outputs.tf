output "ids" {
  description = "The ids of both rules, projects/P/global/firewalls/N: allow and deny."
  value = {
    allow = google_compute_firewall.allow.id
    deny  = google_compute_firewall.deny.id
  }
}

output "rules" {
  description = "The names of both rules, allow and deny."
  value = {
    allow = google_compute_firewall.allow.name
    deny  = google_compute_firewall.deny.name
  }
}
