"""All objects that Create applies in a cluster, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.facts import ClusterFacts


def stages(facts: ClusterFacts, environ: Mapping[str, str]) -> tuple[list[Stage], list[Problem]]:
    """The stages, and notes on manifests that are not the pinned ones.

    Raises:
        ClusterError: A manifest is missing or is not the pinned one.
    """
    job_set = manifests.read(manifests.JOBSET, environ)
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
    notes = [job_set.note]
    if facts.has_queue:
        queue = manifests.read(manifests.KUEUE, environ)
        found += [
            Stage("kinds of Kueue", queue.definitions),
            Stage("Kueue", kueue_manager.configured(queue.rest, facts.most_nodes)),
            Stage("the queue", kueue.objects(facts)),
        ]
        notes.append(queue.note)
    return found, [note for note in notes if note]
