locals {
  _cluster_id = coalesce(var.cluster_id, var.name_prefix)

  _by_vm        = ["metadata.system_labels.\"name\""]
  _by_direction = concat(local._by_vm, ["metric.labels.\"direction\""])

  # In order of importance, two in a row. What a metric is measured in, Google's
  # chart says itself.
  _charts = [
    { title = "GPU utilisation, mean of a VM's GPUs", metric = "agent.googleapis.com/gpu/utilization", only = "", align = "MEAN", reduce = "MEAN", lines = local._by_vm },
    { title = "GPU memory in use", metric = "agent.googleapis.com/gpu/memory/bytes_used", only = "metric.labels.memory_state=\"used\"", align = "MEAN", reduce = "SUM", lines = local._by_vm },
    { title = "NVLink traffic", metric = "workload.googleapis.com/gpu.dcgm.nvlink.io", only = "", align = "RATE", reduce = "SUM", lines = local._by_direction },
    { title = "Network traffic, all interfaces", metric = "agent.googleapis.com/interface/traffic", only = "metric.labels.device!=\"lo\"", align = "RATE", reduce = "SUM", lines = local._by_direction },
    { title = "CPU utilisation", metric = "compute.googleapis.com/instance/cpu/utilization", only = "", align = "MEAN", reduce = "MEAN", lines = local._by_vm },
    { title = "Memory in use", metric = "agent.googleapis.com/memory/percent_used", only = "metric.labels.state=\"used\"", align = "MEAN", reduce = "MEAN", lines = local._by_vm },
  ]

  _width  = 24
  _height = 16

  _tiles = [
    for index, chart in local._charts : merge(
      # Google leaves out what is 0, and a second plan would find it missing.
      { for side, offset in { xPos = index % 2 * local._width, yPos = floor(index / 2) * local._height } : side => offset if offset > 0 },
      {
        width  = local._width
        height = local._height
        widget = {
          title = chart.title
          xyChart = {
            dataSets = [{
              plotType = "LINE"
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = join(" AND ", compact([
                    "metric.type=\"${chart.metric}\"",
                    "resource.type=\"gce_instance\"",
                    "metadata.user_labels.\"aiinfra-cluster\"=\"${local._cluster_id}\"",
                    chart.only,
                  ]))
                  aggregation = {
                    alignmentPeriod    = "60s"
                    perSeriesAligner   = "ALIGN_${chart.align}"
                    crossSeriesReducer = "REDUCE_${chart.reduce}"
                    groupByFields      = chart.lines
                  }
                }
              }
            }]
            yAxis = { scale = "LINEAR" }
          }
        }
      },
    )
  ]
}

resource "google_monitoring_dashboard" "cluster" {
  project = var.project_id
  dashboard_json = jsonencode({
    displayName  = "GPU cluster ${var.name_prefix}"
    labels       = { aiinfra-cluster = local._cluster_id }
    mosaicLayout = { columns = 2 * local._width, tiles = local._tiles }
  })
}
