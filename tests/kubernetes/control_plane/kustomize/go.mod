module aiinfra.test/control-plane/kustomize

go 1.24.0

require sigs.k8s.io/kustomize/kustomize/v5 v5.7.1
