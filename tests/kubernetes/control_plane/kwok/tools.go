//go:build tools

// Package tools pins kwok, which plays the kubelets of the real-Kubernetes tests.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
