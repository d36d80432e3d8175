# Without the agent there is next to nothing to see.
module "monitoring" {
  source = "../modules/monitoring"
  count  = var.startup.ops_agent ? 1 : 0

  cluster_id  = local._cluster_id
  name_prefix = var.name_prefix
  project_id  = var.project_id
}
