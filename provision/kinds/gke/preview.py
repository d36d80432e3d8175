"""What a GKE cluster would have beside machines and networks, and what a job would take of it."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits, names
from provision.cost import estimate
from provision.deployment.kind import Needs
from provision.documents.plan import Contents, Identity
from provision.errors import SettingsError
from provision.kinds import variables
from provision.kinds.gke.kubernetes import fabric_pods, facts, jobs, kueue, manifests, stages
from provision.kinds.gke.kubernetes.objects import to_yaml
from provision.screens import amounts
from provision.screens.layout import counted
from provision.spec import job, outbound
from provision.spec.topology import gpu_words
from provision.terraform.plan import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.spec.cluster import GkeSpec
    from provision.spec.job import JobSpec
    from provision.spec.pools import Pool

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


# ------------------------------------------------------------------------------ a job


def by_default(made: Pool | None, most: int) -> int:
    """How many nodes a job gets that names no number: of those that are there in any case, all."""
    return most if made is not None and made.size.count is not None else min(most, 1)


@dataclass(frozen=True)
class Room:
    """What a job has of a cluster at a time."""

    pool: GpuPool
    nodes: int  # of each program
    slots: int  # how many of them run at a time: its tasks, or one
    gpus: int  # of each node

    @property
    def parts(self) -> int:
        """How many such parts a node has."""
        return max(1, self.pool.gpus // max(self.gpus, 1))

    @property
    def pods(self) -> int:
        """How many of its pods run at a time."""
        return self.nodes * self.slots

    @property
    def machines(self) -> int:
        """How many nodes these fill."""
        return -(-self.pods // self.parts)


def room(facts: ClusterFacts, spec: JobSpec, made: Callable[[], Mapping[str, Pool]]) -> Room:
    """Where a job runs, on how many nodes, and how many of its tasks at a time."""
    wanted = spec.nodes or 1
    queues = (kueue.LOCAL_QUEUE, *(it.name for it in facts.queues)) if facts.has_queue else ()
    job.require_offered(spec, queues=queues, ray=facts.ray_operator)
    if not facts.pools:
        raise SettingsError("The cluster has no GPU nodes", fix="GKE_NODE_POOLS and Create")
    offered = [(it, it.machine_type, it.accelerator) for it in facts.pools]
    meant = job.chosen(spec.machine, offered)
    largest = max(meant, key=lambda it: it.gpus)
    job.require_gpus(spec, largest.machine_type, largest.gpus)
    meant = [it for it in meant if it.gpus >= (spec.gpus or 0)]
    main = jobs.main_pool(meant)
    fitting = (it for it in (main, *meant) if it.max_nodes >= wanted)
    pool = next(fitting, max(meant, key=lambda it: it.max_nodes))
    job.require_network(spec, pool.machine_type, pool.gpus)
    found = Room(pool, wanted, 1, spec.gpus or pool.gpus)
    most = at_a_time = pool.max_nodes
    at_a_time *= found.parts
    if facts.has_queue:
        own = facts.gpu_quota // max(found.gpus, 1)
        most, at_a_time = min(most, own), min(at_a_time, own)
    if wanted > most:
        of = f" of {spec.machine}" if spec.machine else ""
        raise SettingsError(
            f"The job wants {wanted} nodes, and can have {most}",
            why=f"the largest pool{of}, {pool.name}, has at most {pool.max_nodes}"
            + (f", and the queue has {facts.gpu_quota} GPUs" if facts.has_queue else "")
            + "; all begin together, so it would wait for ever",
            fix=f"--nodes {most}" if most else "KUEUE_GPU_QUOTA, and Create",
            setting="--nodes",
        )
    if spec.array:
        asked = min(spec.array.tasks, spec.array.most or spec.array.tasks)
        return dataclasses.replace(found, slots=min(asked, at_a_time))
    return dataclasses.replace(found, nodes=spec.nodes or by_default(made().get(pool.name), most))


def needs(
    spec: JobSpec, room: Room, made: Pool | None, coming: int, listed: Prices | None
) -> Needs:
    """What a job takes that has its number of nodes, of which so many come for it."""
    pool, nodes = room.pool, room.machines
    parts = estimate.of_machines(made, coming, listed) if made and listed and coming else ()
    price = amounts.of_parts(parts) if coming else "there already, at no more cost"
    facts = [
        f"{counted(nodes, 'node')} of {pool.name}",
        f"{room.pods * room.gpus} x {gpu_words(pool.accelerator)}",
        f"for {room.slots} of its {spec.array.tasks} tasks at a time" if spec.array else "",
        f"{coming} of them new" if 0 < coming < nodes else "",
        "at an unknown price" if price == "unknown" else price,
        _until(spec, pool),
    ]
    # What nobody knows may be more than any limit.
    unknown = Decimal("Infinity")
    more = sum((unknown if it.most is None else it.most for it in parts), Decimal(0))
    return Needs(words=f"The job takes {', '.join(filter(None, facts))}", more=more)


def _until(spec: JobSpec, pool: GpuPool) -> str:
    longest = spec.seconds or limits.LONGEST_RUN
    most = kueue.run_seconds(pool, longest) if pool.queued else longest
    if spec.seconds == most:
        own = f"--time ({amounts.span(most)}) is over"
        return f"until its tasks have ended, each when {own}" if spec.array else f"until {own}"
    if pool.queued:
        return f"until it ends, {amounts.span(most)} at most"
    run = pool.max_run_seconds
    return "until it ends" + (f", each node {amounts.span(run)} at most" if run else "")
