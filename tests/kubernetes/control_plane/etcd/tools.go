//go:build tools

// Package tools pins the etcd server that the real-Kubernetes tests start.
package tools

import _ "go.etcd.io/etcd/server/v3"
