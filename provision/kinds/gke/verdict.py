"""What a test of a pool came to: its nodes, what is between them, whose the faults are."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from provision.catalogue import bandwidths
from provision.codes import Code
from provision.documents.checks import Bandwidth, NodeCheck, NodesTry
from provision.errors import Problem
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Remedies, Tried
from provision.kinds.gke.kubernetes import bandwidth, fabric_pods
from provision.screens import layout
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.bandwidths import Reference
    from provision.documents.checks import RayCheck
    from provision.kinds.gke.kubernetes.bandwidth import Measurement, Told
    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node
    from provision.kinds.gke.kubernetes.trials import Ran

_HOST: Final = re.compile(rf"\b{fabric_pods.REPLICATED_JOB}-0-(\d+)")
"""The number of a pod in the name of its host."""
_SOCKETS: Final = "NCCL used plain sockets there instead of the GPU network"
_SILENT: Final = "it did not answer the other nodes: its pod, or the network to it, did not come up"


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A pool that was tested."""

    pool: GpuPool
    nodes: tuple[str, ...]  # the nodes that took part, in the order of the test's pods
    told: Told | None  # what they measured; None where no node was fit to
    # node -> what was found on it; also nodes that could take no part
    checked: Mapping[str, NodeCheck]
    # node -> its zone, as far as it is known
    zones: Mapping[str, str] = field(default_factory=dict)
    ray: RayCheck | None = None  # what became of the test through Ray; None where Ray is not on
    cordoned: tuple[str, ...] = ()  # the nodes that this run has cordoned

    @property
    def figures(self) -> Reference | None:
        """The published ones; None where there are none, or no network to measure."""
        return self.pool.bandwidth if len(self.nodes) >= bandwidths.MACHINES else None

    @property
    def tried(self) -> list[Tried]:
        """All that was measured, the first with all nodes."""
        if self.told is None:
            return []
        silent = set(self.told.silent)
        whole = tuple(node for number, node in enumerate(self.nodes) if number not in silent)
        parts = {
            (self.nodes[one], self.nodes[other]): it
            for (one, other), it in self.told.pairs.items()
            if max(one, other) < len(self.nodes)
        }
        found = []
        for nodes, it in ((whole, self.told.whole), *parts.items()):
            why = bandwidth.why_bad(it, self.pool, len(nodes))
            found.append(Tried(nodes, not why, it.peak if it.average is not None else None, why))
        return found

    @property
    def finding(self) -> diagnosis.Finding:
        """Who is at fault for what was too slow."""
        return diagnosis.find(self.tried)

    @property
    def bad(self) -> tuple[str, ...]:
        """The nodes that something is wrong with for certain."""
        alone = [name for name, it in self.checked.items() if it.faults]
        between = self.finding.faulty if len(self.nodes) > 1 else ()
        return tuple(dict.fromkeys([*alone, *between]))

    def why(self, name: str) -> str:
        """What is wrong with a node that is bad."""
        known = self.checked.get(name, NodeCheck())
        return "; ".join(known.faults) or diagnosis.worst(self.tried, name)

    @property
    def document(self) -> Bandwidth:
        """It for the report."""
        measured = self.told.whole if self.told else bandwidth.parse("")
        figures, finding = self.figures, self.finding
        return Bandwidth(
            nodes=len(self.nodes),
            average=measured.average,
            peak_out_of_place=measured.peak_out_of_place,
            peak_in_place=measured.peak_in_place,
            out_of_bounds=measured.out_of_bounds,
            interfaces={
                it: found.interfaces
                for it, found in self.checked.items()
                if found.interfaces is not None
            },
            networks=measured.networks,
            rows=measured.rows,
            expected=figures.peak if figures else None,
            least=figures.least if figures else None,
            source=figures.source if figures else "",
            checked=self.checked,
            tries=tuple(
                NodesTry(nodes=it.members, passed=it.passed, bandwidth=it.bandwidth, why=it.why)
                for it in self.tried
            ),
            faulty=finding.faulty,
            suspects=finding.suspects,
            cordoned=self.cordoned,
            ray=self.ray,
        )


def of(pool: GpuPool, ran: Ran, unfit: Mapping[str, NodeCheck]) -> Tested:
    """What a test has found.

    `unfit`: nodes that could take no part, with what is wrong with them.
    """
    told = bandwidth.read(ran.logs[0] if ran.logs else "")
    found = dict(unfit)
    for number, (node, log) in enumerate(zip(ran.nodes, ran.logs, strict=True)):
        one = bandwidth.of_log(log, pool)
        more = (_SILENT,) if number in told.silent else ()
        found[node] = dataclasses.replace(one, faults=(*one.faults, *more))
    for number in _on_sockets(told.whole, pool, len(ran.nodes)):
        one = found[ran.nodes[number]]
        found[ran.nodes[number]] = dataclasses.replace(one, faults=(*one.faults, _SOCKETS))
    return Tested(pool=pool, nodes=ran.nodes, told=told, checked=found)


def unfit(nodes: Sequence[Node], pool: GpuPool) -> dict[str, NodeCheck]:
    """The nodes of a pool that can take no part in a test, with what is wrong with them."""
    told = {node.name: bandwidth.of_node(node, pool) for node in nodes}
    return {name: NodeCheck(faults=it) for name, it in told.items() if it}


def problems(tested: Tested) -> list[Problem]:
    """What is wrong with a pool."""
    pool, tried = tested.pool, tested.tried
    found = diagnosis.of_single(
        tested.checked, lambda _: pool.machine_type, lambda name: _another(tested, (name,))
    )
    if tested.told and _is_plain_everywhere(tested.told.whole, pool, len(tested.nodes)):
        everywhere = _problem(
            "NCCL used plain sockets instead of the GPU network",
            "it is the same on each node, so no single one is at fault: NCCL's plugin is not"
            " installed, or does not find its interfaces",
            "check kubectl --namespace kube-system get daemonsets, and the installer's log",
        )
        return [*found, everywhere]
    if tried and len(tried[0].members) == 1 and not tried[0].passed:
        alone = _problem(
            f"{tried[0].members[0]}: {tried[0].why}",
            "NCCL's test ran on its own GPUs; the log above says where it ended",
            _another(tested, tried[0].members),
        )
        return [*found, alone]
    remedies = Remedies(
        members="nodes",
        another=lambda names: _another(tested, names),
        more="run Test --nodes 3, or with more, if the pool may have as many",
        closer="set ENABLE_COMPACT_PLACEMENT=yes, which new pools alone can have",
    )
    bar = diagnosis.bar(pool.machine_type, tested.figures)
    found += diagnosis.problems(tested.finding, tried, bar, remedies)
    if tested.ray is not None and not tested.ray.passed:
        through_ray = _problem(
            f"the test through Ray failed on {pool.name}: {tested.ray.why}",
            "a RayJob was to use each GPU of its nodes once",
            "look at Ray's operator: kubectl get rayjobs,rayclusters; then run Test again",
        )
        found.append(through_ray)
    return found


def _problem(what: str, why: str, fix: str) -> Problem:
    return Problem(code=Code.TEST_FAILED, what=what, why=why, fix=fix)


def passed(tested: Tested) -> str:
    """The verdict on a pool without faults, in one sentence."""
    pool, count = tested.pool, len(tested.nodes)
    gpus = sum(it.gpus or 0 for it in tested.checked.values())
    nodes, with_gpus = layout.counted(count, "node"), layout.counted(gpus, "GPU")
    text = f"{pool.name}: {nodes} with {with_gpus}: no faults"
    if tested.ray is not None:
        text += ", and Ray has used each"
    if count < bandwidths.MACHINES or tested.told is None:
        return f"{text}; one node has no network to measure"
    published = tested.figures.peak if tested.figures else None
    reached = diagnosis.reached(tested.told.whole.peak, count, published)
    return f"{text}; all_gather reaches {reached}"


def _on_sockets(whole: Measurement, pool: GpuPool, nodes: int) -> frozenset[int]:
    """The numbers of nodes on which alone NCCL did not use the network of the GPUs."""
    hosts = bandwidth.on_sockets(whole, pool)
    if nodes < bandwidths.MACHINES or len(hosts) == len(whole.used):
        return frozenset()
    numbers = (int(found.group(1)) for host in hosts if (found := _HOST.search(host)))
    return frozenset(number for number in numbers if number < nodes)


def _is_plain_everywhere(whole: Measurement, pool: GpuPool, nodes: int) -> bool:
    """Whether NCCL does not use the network of the GPUs on any node."""
    hosts = bandwidth.on_sockets(whole, pool)
    return nodes >= bandwidths.MACHINES and bool(hosts) and len(hosts) >= len(whole.used)


def _another(tested: Tested, names: tuple[str, ...]) -> str:
    """How to have other nodes in the place of some, by how the pool gets its nodes (jobs.md, 6)."""
    named = " ".join(names)
    if set(names) <= set(tested.cordoned):
        cordon = f"it is cordoned (undo: kubectl uncordon {named})"
    else:
        cordon = f"keep jobs away: kubectl cordon {named}, or Test --cordon"
    means = Mode(tested.pool.mode).means
    if means.requested:
        return (
            f"{cordon}; it goes ten minutes after its last job, or at the end of its run, and the"
            " next request brings another"
        )
    if means.bound:
        label = f"kubectl label nodes {named} cloud.google.com/fault-behavior=PERFORMANCE"
        return f"{cordon}; let GKE replace it: {label}"
    zones = {tested.zones[name] for name in names if name in tested.zones}
    zone = f" --zone {zones.pop()}" if len(zones) == 1 else ""
    return (
        f"{cordon}; let another VM take its place: kubectl drain {named} --ignore-daemonsets"
        f" --delete-emptydir-data, then gcloud compute instances delete {named}{zone}"
    )
