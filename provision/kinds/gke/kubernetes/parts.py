"""Whether what Create has brought into a cluster is still there, and works.

Without Kueue's manager no job of the cluster starts at all, those without a queue included: its
webhook is asked for each (kueue#5244). Whatever of it somebody has deleted, Create makes again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.documents.status import About, Trouble
from provision.kinds.gke.kubernetes import kueue, nccl, stages
from provision.kinds.gke.kubernetes.objects import Object, conditions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts

_APPS: Final = "apps/v1"
_AGAIN: Final = "run Create: it makes what is missing, and changes nothing else"
_GONE: Final = ("somebody deleted it, or no Create has come to its end",)
_MANAGERS: Final = {
    kueue.MANAGER: ("kueue-system", "no job starts, and none is let in"),
    "jobset-controller-manager": ("jobset-system", "no JobSet starts its pods, which `Run` makes"),
}
"""Deployment -> its namespace, and what does not work without it."""


def look(cluster: Cluster, facts: ClusterFacts) -> tuple[Trouble, ...]:
    """What is wrong with the parts of a cluster: four lists, more only where an installer fails."""
    return (*_managers(cluster, facts), *_queue(cluster, facts), *_installers(cluster, facts))


def _managers(cluster: Cluster, facts: ClusterFacts) -> Iterator[Trouble]:
    there = _by_name(cluster.all(_APPS, "Deployment"))
    for name, (namespace, without) in _MANAGERS.items():
        if name == kueue.MANAGER and not facts.has_queue:
            continue
        found = there.get((namespace, name))
        if found is None:
            yield _trouble(f"the Deployment {name} is gone: {without}", _GONE)
            continue
        available = conditions(found).get("Available", {})
        if available.get("status") != "True":
            yield _trouble(
                f"the Deployment {name} is not available: {without}",
                (str(available.get("message") or "it has not said why"),),
                f"see `kubectl --namespace {namespace} describe pods`; pods without GPUs need a"
                " node of the pool for the system",
            )


def _queue(cluster: Cluster, facts: ClusterFacts) -> Iterator[Trouble]:
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
            yield _trouble(f"the {kind} {name} is gone: jobs of it wait for ever", _GONE)
            continue
        active = conditions(found).get("Active", {})
        # Kueue has not looked at a new one yet.
        if active.get("status") == "False":
            said = ": ".join(filter(None, (active.get("reason"), active.get("message"))))
            yield _trouble(f"the {kind} {name} lets no job in", (said,) if said else ())


def _installers(cluster: Cluster, facts: ClusterFacts) -> Iterator[Trouble]:
    wanted = [it["metadata"]["name"] for it in nccl.objects(facts)]
    there = _by_name(cluster.all(_APPS, "DaemonSet", nccl.NAMESPACE)) if wanted else {}
    for name in wanted:
        found = there.get((nccl.NAMESPACE, name))
        if found is None:
            what = f"the DaemonSet {name} is gone: new nodes get no NCCL, and jobs wait on them"
            yield _trouble(what, _GONE)
            continue
        left = stages.unfinished(cluster, name, found)
        if left is not None and left[1]:
            words, wrong = left
            described = f"--namespace {nccl.NAMESPACE} describe pods --selector k8s-app={name}"
            why = ("\n".join(wrong),)
            yield _trouble(f"the installer {words}", why, f"see `kubectl {described}`")


def _trouble(what: str, why: tuple[str, ...], see: str = "") -> Trouble:
    """A part that is gone, or does not work; `see`: what to look at: Kubernetes goes on trying."""
    tries = bool(see)
    return Trouble(about=About.CLUSTER, what=what, why=why, fix=see or _AGAIN, by_itself=tries)


def _by_name(things: list[Any]) -> Mapping[tuple[str, str], Object]:
    return {(it["metadata"].get("namespace", ""), it["metadata"]["name"]): it for it in things}
