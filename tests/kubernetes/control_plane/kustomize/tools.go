//go:build tools

// Package tools pins kustomize, which makes one manifest of Kueue's sources.
package tools

import _ "sigs.k8s.io/kustomize/kustomize/v5"
