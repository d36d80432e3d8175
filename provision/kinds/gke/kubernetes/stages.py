"""All objects that Create applies in a cluster, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import (
    identity,
    kueue,
    kueue_manager,
    manifests,
    nccl,
    networks,
    storage,
)
from provision.kinds.gke.kubernetes.apply import Stage
from provision.kinds.gke.kubernetes.manifests import Manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.facts import ClusterFacts


def stages(facts: ClusterFacts, environ: Mapping[str, str]) -> tuple[list[Stage], list[Problem]]:
    """The stages, and notes on manifests that are not the pinned ones.

    Raises:
        ClusterError: A manifest is missing or is not the pinned one.
    """
    add_ons = manifests.wanted(queue=facts.has_queue)
    read = {add_on.name: manifests.read(add_on, environ) for add_on in add_ons}
    return _with(facts, read), [it.note for it in read.values() if it.note]


def own(facts: ClusterFacts) -> list[Stage]:
    """The stages without what comes from manifests."""
    return _with(facts, {})


def _with(facts: ClusterFacts, read: Mapping[str, Manifest]) -> list[Stage]:
    job_set = read.get(manifests.JOBSET.name, _NOTHING)
    found = [
        Stage("networks of the pods", networks.objects(facts)),
        Stage("NCCL on the nodes", nccl.objects(facts)),
        Stage(
            "identity, priorities and storage",
            [*identity.objects(facts), *kueue.priority_classes(), *storage.objects(facts)],
        ),
        Stage("kinds of JobSet", job_set.definitions),
        Stage("JobSet", job_set.rest),
    ]
    if facts.has_queue:
        queue = read.get(manifests.KUEUE.name, _NOTHING)
        found += [
            Stage("kinds of Kueue", queue.definitions),
            Stage("Kueue", kueue_manager.configured(queue.rest, facts.most_nodes)),
            Stage("the queue", kueue.objects(facts)),
        ]
    return [Stage(it.name, facts.mirrored(it.objects)) for it in found]


_NOTHING: Final = Manifest(definitions=[], rest=[])
