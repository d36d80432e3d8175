//go:build tools

// Package tools pins the JobSet controller that the real-Kubernetes tests start.
package tools

import _ "sigs.k8s.io/jobset"
