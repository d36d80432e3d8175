"""What Create would apply in Kubernetes, and the jobs it would write, before anything exists."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from provision.kinds.gke.kubernetes import facts, jobs, manifests, stages
from provision.kinds.gke.kubernetes.objects import to_yaml
from provision.terraform.plan import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.kinds.gke.kubernetes.apply import Stage
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.spec.cluster import GkeSpec


def files(context: Context, target: Deployment[GkeSpec], workspace: Workspace) -> Mapping[str, str]:
    """The objects by stage, in the order in which Create applies them, and the example jobs.

    What they refer to, such as the names of networks, is read from a plan's outputs, as Create
    reads it from those of its apply. Objects of add-ons whose manifests are not at hand are left
    out; that they are not is told in the same run, as Create would not begin.
    """
    known = _facts(target.spec, workspace.tool.plan().foreseen)
    add_ons = manifests.wanted(queue=known.has_queue)
    if manifests.missing(add_ons, context.environ):
        wanted = stages.own(known)
    else:
        wanted, notes = stages.stages(known, context.environ)
        context.note(notes)
    rendered = {f"jobs/{name}": text for name, text in jobs.render(known).items()}
    return {**_by_stage(wanted), **rendered}


def _facts(spec: GkeSpec, outputs: Mapping[str, object]) -> ClusterFacts:
    known = facts.read(spec, outputs)
    # The version decides about software: the one that is asked for, where Google has not told it.
    version = spec.version or "" if known.version == UNKNOWN else known.version
    return dataclasses.replace(known, version=version)


def _by_stage(found: Sequence[Stage]) -> dict[str, str]:
    wanted = [stage for stage in found if stage.objects]
    return {
        f"kubernetes/{number:02}-{_plain(stage.name)}.yaml": (
            f"# {stage.name}: stage {number} of {len(wanted)} that Create applies.\n"
            f"{to_yaml(stage.objects)}"
        )
        for number, stage in enumerate(wanted, start=1)
    }


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())
