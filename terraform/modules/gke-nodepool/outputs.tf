output "id" {
  description = "The pool's id, projects/P/locations/L/clusters/C/nodePools/N."
  value       = google_container_node_pool.gpu.id
}

output "instance_group_urls" {
  description = "The managed instance groups of the pool's nodes, for what attaches to them."
  value       = google_container_node_pool.gpu.managed_instance_group_urls
}

output "pool" {
  description = "The pool: name, zone, machine_type, mode (the model of its capacity) and max, the most nodes that it has. Nodes may still be starting."
  value = {
    machine_type = google_container_node_pool.gpu.node_config[0].machine_type
    max          = coalesce(var.pool.size.count, var.pool.size.max, 0)
    mode         = var.pool.capacity.model
    name         = google_container_node_pool.gpu.name
    zone         = var.pool.zone
  }
}
