"""The identity of pods towards Google Cloud: Workload Identity Federation for GKE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.objects import Object, build

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

NAMESPACE: Final = "default"


def name(facts: ClusterFacts) -> str:
    """The Kubernetes account of pods: named as the account that they act as.

    All clusters of a project share its identity pool, and a name that two of them have would be one
    identity (Google, "Identity sameness"); accounts have a name in the project that is their own.
    """
    return facts.workload_account.partition("@")[0]


def objects(facts: ClusterFacts) -> list[Object]:
    """The Kubernetes service account that may impersonate the cluster's workload account."""
    account = build("v1", "ServiceAccount", name(facts), NAMESPACE)
    account["metadata"]["annotations"] = {"iam.gke.io/gcp-service-account": facts.workload_account}
    return [account]
