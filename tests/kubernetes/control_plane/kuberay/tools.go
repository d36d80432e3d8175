//go:build tools

// Package tools pins the operator of Ray clusters that the real-Kubernetes tests start.
package tools

import _ "github.com/ray-project/kuberay/ray-operator"
