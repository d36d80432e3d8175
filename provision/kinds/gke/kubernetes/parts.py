"""Whether what Create has brought into a cluster is still there, and works.

Without Kueue's manager no job of the cluster starts at all, those without a queue included: its
webhook is asked for each (kueue#5244). Whatever of it somebody has deleted, Create makes again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import kueue, nccl, stages
from provision.kinds.gke.kubernetes.objects import Object, conditions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

_APPS: Final = "apps/v1"
_AGAIN: Final = "run Create: it makes what is missing, and changes nothing else"
_GONE: Final = "somebody deleted it, or no Create has come to its end"
_MANAGERS: Final = {
    kueue.MANAGER: ("kueue-system", "no job starts, and none is let in"),
    "jobset-controller-manager": ("jobset-system", "no JobSet starts its pods, which `Run` makes"),
}
"""Deployment -> its namespace, and what does not work without it."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A part that is gone, or does not work."""

    what: str
    why: str = ""
    fix: str = _AGAIN
    by_itself: bool = False  # whether Kubernetes goes on trying


def look(cluster: Cluster, facts: ClusterFacts) -> tuple[Fault, ...]:
    """What is wrong with the parts of a cluster: four lists, more only where an installer fails."""
    return (*_managers(cluster, facts), *_queue(cluster, facts), *_installers(cluster, facts))


def _managers(cluster: Cluster, facts: ClusterFacts) -> Iterator[Fault]:
    there = _by_name(cluster.all(_APPS, "Deployment"))
    for name, (namespace, without) in _MANAGERS.items():
        if name == kueue.MANAGER and not facts.has_queue:
            continue
        found = there.get((namespace, name))
        if found is None:
            yield Fault(what=f"the Deployment {name} is gone: {without}", why=_GONE)
            continue
        available = conditions(found).get("Available", {})
        if available.get("status") != "True":
            yield Fault(
                what=f"the Deployment {name} is not available: {without}",
                why=str(available.get("message") or "it has not said why"),
                fix=f"see `kubectl --namespace {namespace} describe pods`; pods without GPUs need a"
                " node of the pool for the system",
                by_itself=True,
            )


def _queue(cluster: Cluster, facts: ClusterFacts) -> Iterator[Fault]:
    if not facts.has_queue:
        return
    wanted = [it for it in kueue.objects(facts) if it["kind"] in {"ClusterQueue", "LocalQueue"}]
    there = {
        kind: _by_name(cluster.all(kueue.API, kind)) for kind in ("ClusterQueue", "LocalQueue")
    }
    for thing in wanted:
        kind, name = thing["kind"], thing["metadata"]["name"]
        found = there[kind].get((thing["metadata"].get("namespace", ""), name))
        if found is None:
            yield Fault(
                what=f"the {kind} {name} is gone: jobs of it wait for ever",
                why=_GONE,
            )
            continue
        active = conditions(found).get("Active", {})
        # Kueue has not looked at a new one yet.
        if active.get("status") == "False":
            said = filter(None, (active.get("reason"), active.get("message")))
            yield Fault(what=f"the {kind} {name} lets no job in", why=": ".join(map(str, said)))


def _installers(cluster: Cluster, facts: ClusterFacts) -> Iterator[Fault]:
    wanted = [it["metadata"]["name"] for it in nccl.objects(facts)]
    there = _by_name(cluster.all(_APPS, "DaemonSet", nccl.NAMESPACE)) if wanted else {}
    for name in wanted:
        found = there.get((nccl.NAMESPACE, name))
        if found is None:
            yield Fault(
                what=f"the DaemonSet {name} is gone: new nodes get no NCCL, and jobs wait on them",
                why=_GONE,
            )
            continue
        left = stages.unfinished(cluster, name, found)
        if left is not None and left[1]:
            words, wrong = left
            yield Fault(
                what=f"the installer {words}",
                why="\n".join(wrong),
                fix=f"see `kubectl --namespace {nccl.NAMESPACE} describe pods --selector"
                f" k8s-app={name}`",
                by_itself=True,
            )


def _by_name(things: list[Any]) -> Mapping[tuple[str, str], Object]:
    return {(it["metadata"].get("namespace", ""), it["metadata"]["name"]): it for it in things}
