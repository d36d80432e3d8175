//go:build tools

// Package tools pins the Kueue manager that the real-Kubernetes tests start.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
