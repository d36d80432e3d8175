mock_provider "google" {
  mock_resource "google_monitoring_dashboard" {
    defaults = { id = "projects/123/dashboards/9d900001-aaaa" }
  }
}

variables {
  cluster_id  = "3f9c2a71"
  name_prefix = "train"
  project_id  = "my-project"
}

run "the_dashboard_carries_the_clusters_name_and_marker" {
  assert {
    condition = alltrue([
      jsondecode(google_monitoring_dashboard.cluster.dashboard_json).displayName == "GPU cluster train",
      jsondecode(google_monitoring_dashboard.cluster.dashboard_json).labels == { aiinfra-cluster = "3f9c2a71" },
    ])
    error_message = "It is ${jsonencode([jsondecode(google_monitoring_dashboard.cluster.dashboard_json).displayName, jsondecode(google_monitoring_dashboard.cluster.dashboard_json).labels])}."
  }
  assert {
    condition     = output.dashboard.url == "https://console.cloud.google.com/monitoring/dashboards/builder/9d900001-aaaa?project=my-project"
    error_message = "It is said to be at ${output.dashboard.url}."
  }
}

run "every_chart_shows_vms_of_this_cluster_and_no_others" {
  assert {
    condition = alltrue([
      length(jsondecode(google_monitoring_dashboard.cluster.dashboard_json).mosaicLayout.tiles) == 6,
      alltrue([
        for tile in jsondecode(google_monitoring_dashboard.cluster.dashboard_json).mosaicLayout.tiles :
        strcontains(tile.widget.xyChart.dataSets[0].timeSeriesQuery.timeSeriesFilter.filter, " AND metadata.user_labels.\"aiinfra-cluster\"=\"3f9c2a71\"")
      ]),
    ])
    error_message = "It is ${jsonencode([length(jsondecode(google_monitoring_dashboard.cluster.dashboard_json).mosaicLayout.tiles), google_monitoring_dashboard.cluster.dashboard_json])}."
  }
}

run "charts_stand_side_by_side_and_nothing_is_written_that_google_leaves_out" {
  assert {
    condition = alltrue([
      [for tile in jsondecode(google_monitoring_dashboard.cluster.dashboard_json).mosaicLayout.tiles : "${try(tile.xPos, 0)} ${try(tile.yPos, 0)}"] == [
        "0 0", "24 0", "0 16", "24 16", "0 32", "24 32",
      ],
      !can(regex(":(0|\"\"|null|false|\\[\\]|{})[,}]", google_monitoring_dashboard.cluster.dashboard_json)),
    ])
    error_message = "It is ${jsonencode(google_monitoring_dashboard.cluster.dashboard_json)}."
  }
}
