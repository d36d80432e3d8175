"""The identity of pods towards Google Cloud: Workload Identity Federation for GKE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.objects import Object, build

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

SERVICE_ACCOUNT: Final = "workload-identity-k8s-sa"
NAMESPACE: Final = "default"


def objects(facts: ClusterFacts) -> list[Object]:
    """The Kubernetes service account that may impersonate the cluster's workload account."""
    account = build("v1", "ServiceAccount", SERVICE_ACCOUNT, NAMESPACE)
    account["metadata"]["annotations"] = {"iam.gke.io/gcp-service-account": facts.workload_account}
    return [account]
