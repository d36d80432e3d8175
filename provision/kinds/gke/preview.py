"""What a GKE cluster would have beside machines and networks, before anything exists."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.documents.plan import Contents, Identity
from provision.kinds import variables
from provision.kinds.gke.kubernetes import fabric_pods, facts, jobs, kueue, manifests, stages
from provision.kinds.gke.kubernetes.objects import to_yaml
from provision.screens.layout import counted
from provision.spec import outbound
from provision.terraform.plan import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.spec.cluster import GkeSpec

_IMAGE: Final = re.compile(r"^[ -]*image: *[\"']?([^\s\"']+)", re.MULTILINE)


def contents(spec: GkeSpec) -> Contents:
    """What Plan lists of it."""
    version = (spec.version or "").rstrip(".")
    pods = names.WORKLOAD_ACCOUNT.of(spec.name_prefix)
    return Contents(
        words=f"GKE {version or f'({spec.release_channel})'}",
        place=spec.region,
        image=None,
        software=tuple(_software(spec)),
        identities=(
            variables.identity(spec, "nodes"),
            Identity(account=pods, bearer="pods", made=True),
        ),
    )


def _software(spec: GkeSpec) -> Iterator[str]:
    yield "JobSet"
    if spec.managed:
        yield "RDMA by GKE"
    elif spec.gpu_networks:
        yield "NCCL plugin"
    if spec.ray_operator:
        yield "Ray operator"
    if spec.kueue:
        gpus = spec.gpu_quota or sum(pool.size.most * pool.gpus for pool in spec.gpu_pools)
        rest = gpus - sum(queue.gpus for queue in spec.queues)
        yield "Kueue"
        yield f"queue {kueue.LOCAL_QUEUE} ({counted(rest, 'GPU')})"
        for queue in spec.queues:
            yield f"queue {queue.name} ({counted(queue.gpus, 'GPU')})"


def files(context: Context, target: Deployment[GkeSpec], workspace: Workspace) -> Mapping[str, str]:
    """The objects by stage, in the order in which Create applies them, the jobs, and their images.

    What they refer to, such as the names of networks, is read from a plan's outputs, as Create
    reads it from those of its apply. Objects of add-ons whose manifests are not at hand are left
    out; that they are not is told in the same run, as Create would not begin.
    """
    known = facts.read(target.spec, workspace.tool.plan().foreseen)
    if known.version == UNKNOWN:
        # The version decides about software: the one that is asked for, until Google has told it.
        known = dataclasses.replace(known, version=target.spec.version or "")
    made, notes = _made(known, context.environ)
    context.note(notes)
    bare, _ = _made(dataclasses.replace(known, image_mirrors=()), context.environ)
    # Each image by its own name, and by that with which it is fetched.
    images = {it for text in bare.values() for it in _IMAGE.findall(text)}
    images |= {fabric_pods.GCLOUD, jobs.IMAGE}  # of jobs that Run makes
    lines = (f"{it} {outbound.image(it, known.image_mirrors)}\n" for it in sorted(images))
    head = "# What nodes fetch: the image, and where IMAGE_MIRROR has it.\n"
    return {**made, "images.txt": head + "".join(lines)}


def _made(
    known: ClusterFacts, environ: Mapping[str, str]
) -> tuple[dict[str, str], Sequence[Problem]]:
    """The files, and notes on manifests."""
    notes: Sequence[Problem] = ()
    if manifests.missing(manifests.wanted(queue=known.has_queue), environ):
        found = stages.own(known)
    else:
        found, notes = stages.stages(known, environ)
    wanted = [stage for stage in found if stage.objects]
    by_stage = {
        f"kubernetes/{number:02}-{re.sub(r'[^a-z0-9]+', '-', stage.name.lower())}.yaml": (
            f"# {stage.name}: stage {number} of {len(wanted)} that Create applies.\n"
            f"{to_yaml(stage.objects)}"
        )
        for number, stage in enumerate(wanted, start=1)
    }
    return {**by_stage, **{f"jobs/{it}": text for it, text in jobs.render(known).items()}}, notes
