"""What Create would apply in Kubernetes, and the jobs it would write, before anything exists."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import fabric_pods, facts, jobs, manifests, stages, torchrun
from provision.kinds.gke.kubernetes.objects import to_yaml
from provision.spec import outbound
from provision.terraform.plan import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.rollout import Stage
    from provision.spec.cluster import GkeSpec

_IMAGE: Final = re.compile(r"^[ -]*image: *[\"']?([^\s\"']+)", re.MULTILINE)


def files(context: Context, target: Deployment[GkeSpec], workspace: Workspace) -> Mapping[str, str]:
    """The objects by stage, in the order in which Create applies them, the jobs, and their images.

    What they refer to, such as the names of networks, is read from a plan's outputs, as Create
    reads it from those of its apply. Objects of add-ons whose manifests are not at hand are left
    out; that they are not is told in the same run, as Create would not begin.
    """
    found = _facts(target.spec, workspace.tool.plan().foreseen)
    made, notes = _made(found, context.environ)
    context.note(notes)
    bare, _ = _made(dataclasses.replace(found, image_mirrors=()), context.environ)
    return {**made, "images.txt": _images(bare, found.image_mirrors)}


def _made(
    known: ClusterFacts, environ: Mapping[str, str]
) -> tuple[dict[str, str], Sequence[Problem]]:
    """The files, and notes on manifests."""
    notes: Sequence[Problem] = ()
    add_ons = manifests.wanted(queue=known.has_queue)
    if manifests.missing(add_ons, environ):
        wanted = stages.own(known)
    else:
        wanted, notes = stages.stages(known, environ)
    rendered = {f"jobs/{name}": text for name, text in jobs.render(known).items()}
    return {**_by_stage(wanted), **rendered}, notes


def _images(made: Mapping[str, str], mirrors: Sequence[str]) -> str:
    """Each image by its own name, and by that with which it is fetched."""
    names = {it for text in made.values() for it in _IMAGE.findall(text)}
    names |= {fabric_pods.GCLOUD, torchrun.IMAGE}  # of jobs that Run makes
    lines = (f"{name} {outbound.image(name, mirrors)}\n" for name in sorted(names))
    return "# What nodes fetch: the image, and where IMAGE_MIRROR has it.\n" + "".join(lines)


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
