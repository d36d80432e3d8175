//go:build tools

// Package tools pins the sources of custom resource definitions that GKE, or another program than
// those which are built here, brings into a cluster.
package tools

import (
	_ "github.com/GoogleCloudPlatform/gke-networking-api/apis/network/v1"
	_ "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	_ "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	_ "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)
