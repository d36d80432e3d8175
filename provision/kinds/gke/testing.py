"""Test for GKE clusters: look at nodes of each pool, and measure NCCL's bandwidth between them.

What a node should have is known by its machine type, and the bandwidth by published figures. Where
it is too low, pairs of nodes tell which is at fault.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import bandwidths, names
from provision.codes import Code
from provision.cost import rates
from provision.documents.checks import Bandwidth, NodeCheck, NodesTry, RayCheck
from provision.errors import (
    CapacityError,
    ClusterError,
    Problem,
    ProvisionError,
    SettingsError,
    StillWaiting,
)
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Remedies, Tried
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import all_gather, fabric_pods, stages, trials
from provision.kinds.gke.kubernetes import nodes as nodes_module
from provision.kinds.gke.kubernetes.kueue import POOL_LABEL
from provision.lifecycle import pricing
from provision.screens import amounts, layout
from provision.screens import checks as screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.spec.pools import Pool
    from provision.state.record import Record

_CHANGING: Final = 60.0  # seconds of cloud time
_POLL: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Part:
    """A pool that is to be tested."""

    pool: GpuPool
    nodes: int  # on how many of its nodes
    per_hour: Decimal | None = None  # what these cost in an hour, in USD; None if not known
    is_estimate: bool = False  # whether a price in it is an estimate

    @property
    def gpus(self) -> int:
        """The number of GPUs that take part."""
        return self.nodes * self.pool.gpus

    def __str__(self) -> str:
        """Its size, and its price where one is known."""
        about = "≈ " if self.is_estimate else ""
        cost = "" if self.per_hour is None else f", {about}{amounts.usd(self.per_hour)}/h"
        size = f"{layout.counted(self.nodes, 'node')}, {layout.counted(self.gpus, 'GPU')}"
        return f"{self.pool.name} ({size}{cost})"


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test the pool of --pool, or each pool; what a test makes is always deleted afterwards."""
    settings = context.settings
    facts = control_plane.finished(cloud.folder, record)
    control_plane.require_settings(cloud.folder, record)
    if "test_nodes" in settings.model_fields_set:  # of this run; else that of the last Create
        facts = dataclasses.replace(facts, test_nodes=settings.test_nodes)
    document = control_plane.find(cloud.api, record)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    deadline = context.progress.deadline(_CHANGING, _POLL)
    deadline.retry(lambda: stages.require_sources(cluster, facts), "look at the account of pods")
    prices = pricing.known(context, cloud)
    made = control_plane.made(document, facts) if prices else {}
    parts = chosen(facts, settings.test_pool, record.name_prefix, made, prices)
    context.console.progress(told(parts, settings.capacity_timeout))
    left = float(settings.capacity_timeout)
    failed: list[ProvisionError] = []
    found: list[str] = []
    for number, part in enumerate(parts):
        # Who waits long leaves less to the others, but never nothing.
        share = left / (len(parts) - number)
        try:
            tested, waited = _test(context, cluster, facts, part, share)
        except (CapacityError, StillWaiting, ClusterError) as error:
            left -= share if isinstance(error, StillWaiting) else 0.0
            # One of several says which pool it is about.
            whose = f"{part.pool.name}: " * (len(parts) > 1)
            named = [dataclasses.replace(it, what=f"{whose}{it.what}") for it in error.problems]
            failed.append(type(error).of(named))
            continue
        left -= min(waited, share)
        if bad := list(problems(tested)):
            failed.append(ClusterError.of(bad))
        else:
            found.append(passed(tested))
    if failed:
        for verdict in found:
            context.console.progress(verdict)
        raise _together(failed)
    return "\n".join(found)


# ------------------------------------------------------------------ which pools


def chosen(
    facts: ClusterFacts,
    asked: str | None,
    prefix: str,
    made: Mapping[str, Pool],
    listed: Prices | None,
) -> list[Part]:
    """The pools to test, the cheapest first: what is wrong there is known before the dear ones."""
    known = [pool.name for pool in facts.pools]
    wanted = known if asked is None else [names.own_pool(prefix, asked, known)]
    # The images with NCCL's tests are for x86 alone.
    fit = [pool for pool in facts.pools if pool.name in wanted and not pool.is_arm]
    if not fit:
        raise SettingsError(
            "There is no pool to test" if asked is None else f"There is no pool {asked} to test",
            setting="" if asked is None else "--pool",
            code=Code.INVALID_VALUE,
            why=f"the cluster has {words.listed(known) or 'no GPU pools'}; on Arm machines nothing"
            " is tested, as there is no image of NCCL's tests for them",
            fix="" if asked is None else "remove --pool: then Test tests each pool that it can",
        )
    parts = [_part(facts, pool, made.get(pool.name), listed) for pool in fit]
    return sorted(parts, key=lambda it: (it.per_hour is None, it.per_hour or Decimal(0), it.gpus))


def _part(facts: ClusterFacts, pool: GpuPool, made: Pool | None, listed: Prices | None) -> Part:
    nodes = min(facts.test_nodes, pool.max_nodes)
    if made is None or listed is None:
        return Part(pool=pool, nodes=nodes)
    rate = rates.machine(made, listed)
    return Part(
        pool=pool,
        nodes=nodes,
        per_hour=None if rate.usd is None else nodes * rate.usd,
        is_estimate=any(source.is_estimate for source in rate.sources),
    )


def told(parts: Sequence[Part], wait: float) -> str:
    """What a Test is about to use, in one sentence."""
    many = len(parts) > 1
    order = f"{len(parts)} pools, the cheapest first: " if many else ""
    longest = words.duration(wait) + " in all" * many
    measures = f"{'each is measured' if many else 'measures'} at most"
    return (
        f"Test of {order}{', '.join(map(str, parts))}; waits for nodes at most {longest},"
        f" {measures} {words.duration(all_gather.SECONDS)}"
    )


# ------------------------------------------------------------------ one pool


def _test(
    context: Context, cluster: Cluster, facts: ClusterFacts, part: Part, timeout: float
) -> tuple[Tested, float]:
    """Test a pool, and show what was found; also the seconds that it waited for nodes."""
    pool, ran, waited = part.pool, None, 0.0
    no_ray: CapacityError | StillWaiting | None = None
    there = _nodes(context, cluster, pool.name)
    lacking = unfit(there, pool)
    out_of_use = {node.name for node in there if node.cordoned} | lacking.keys()
    nodes = min(part.nodes, pool.max_nodes - len(out_of_use))
    if nodes > 0:
        ran = trials.bandwidth(
            cluster, facts, pool, nodes, timeout=timeout, progress=context.progress
        )
        tested, waited = of(pool, ran, lacking), ran.waited
        if facts.ray_operator:
            left = max(timeout - waited, 0.0)
            try:
                ray, more = trials.ray(
                    cluster, facts, pool, nodes, timeout=left, progress=context.progress
                )
                tested, waited = dataclasses.replace(tested, ray=ray), waited + more
            except (CapacityError, StillWaiting) as error:
                no_ray = error  # what was measured is told first
        there = _nodes(context, cluster, pool.name)
    elif lacking:
        tested = Tested(pool=pool, nodes=(), told=None, checked=lacking)
    else:
        raise ClusterError(
            f"No node of {pool.name} can be tested: all are cordoned",
            code=Code.TEST_FAILED,
            why=f"the pool may have {pool.max_nodes}, and {words.listed(out_of_use)} take no new"
            " pods",
            fix=f"kubectl uncordon {' '.join(sorted(out_of_use))}",
        )
    tested = dataclasses.replace(tested, zones={node.name: node.zone for node in there})
    if context.settings.test_cordon:
        tested = _cordoned(context, cluster, tested)
    _show(context, tested, ran)
    if no_ray is not None:
        raise no_ray
    return tested, waited


def _show(context: Context, tested: Tested, ran: trials.Ran | None) -> None:
    """Show what was found, and add it to the report."""
    known = {tested.pool.name: tested.document}
    context.report.checks = {**(context.report.checks or {}), **known}
    context.console.show(screen.lines(known, context.console.width), as_result=True)
    if tested.told is not None and tested.told.whole.table:
        context.console.result(tested.told.whole.table)
    elif ran is not None and ran.logs:
        for line in ran.logs[0].splitlines():
            context.console.progress(line)


def _cordoned(context: Context, cluster: Cluster, tested: Tested) -> Tested:
    """Cordon the nodes that are certainly bad."""
    deadline = context.progress.deadline(_CHANGING, _POLL)
    done = []
    for name in tested.bad:
        why = tested.why(name)
        cordon = functools.partial(nodes_module.cordon, cluster, name, why)
        if deadline.retry(cordon, f"cordon {name}"):
            context.console.progress(f"{name} is cordoned: {why}; undo: kubectl uncordon {name}")
            done.append(name)
    return dataclasses.replace(tested, cordoned=tuple(done))


def _nodes(context: Context, cluster: Cluster, pool: str) -> Sequence[nodes_module.Node]:
    deadline = context.progress.deadline(_CHANGING, _POLL)
    found = deadline.retry(
        lambda: cluster.all("v1", "Node", selector=f"{POOL_LABEL}={pool}"), "look at the nodes"
    )
    return [node for one in nodes_module.read(found) for node in one.each]


def _together(failed: Sequence[ProvisionError]) -> ProvisionError:
    """One error: faults count more than machines that Google refuses, and these than a wait."""
    if len(failed) == 1:
        return failed[0]
    problems = [problem for error in failed for problem in error.problems]
    kinds = (ClusterError, CapacityError, StillWaiting)
    worst = next(kind for kind in kinds if any(isinstance(error, kind) for error in failed))
    return worst.of(problems)


# ------------------------------------------------------------------ what it came to

_HOST: Final = re.compile(rf"\b{fabric_pods.REPLICATED_JOB}-0-(\d+)")
"""The number of a pod in the name of its host."""
_SOCKETS: Final = "NCCL used plain sockets there instead of the GPU network"
_SILENT: Final = "it did not answer the other nodes: its pod, or the network to it, did not come up"


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A pool that was tested."""

    pool: GpuPool
    nodes: tuple[str, ...]  # the nodes that took part, in the order of the test's pods
    told: all_gather.Told | None  # what they measured; None where no node was fit to
    # node -> what was found on it; also nodes that could take no part
    checked: Mapping[str, NodeCheck]
    # node -> its zone, as far as it is known
    zones: Mapping[str, str] = field(default_factory=dict)
    ray: RayCheck | None = None  # what became of the test through Ray; None where Ray is not on
    cordoned: tuple[str, ...] = ()  # the nodes that this run has cordoned

    @property
    def figures(self) -> bandwidths.Reference | None:
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
            why = all_gather.why_bad(it, self.pool, len(nodes))
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
        measured = self.told.whole if self.told else all_gather.parse("")
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


def of(pool: GpuPool, ran: trials.Ran, unfit: Mapping[str, NodeCheck]) -> Tested:
    """What a test has found, beside what is wrong with nodes that could take no part."""
    told = all_gather.read(ran.logs[0] if ran.logs else "")
    found = dict(unfit)
    for number, (node, log) in enumerate(zip(ran.nodes, ran.logs, strict=True)):
        one = all_gather.of_log(log, pool)
        more = (_SILENT,) if number in told.silent else ()
        found[node] = dataclasses.replace(one, faults=(*one.faults, *more))
    _, strayed = _on_sockets(told.whole, pool, len(ran.nodes))
    for node in (ran.nodes[number] for number in strayed):
        found[node] = dataclasses.replace(found[node], faults=(*found[node].faults, _SOCKETS))
    return Tested(pool=pool, nodes=ran.nodes, told=told, checked=found)


def unfit(nodes: Sequence[nodes_module.Node], pool: GpuPool) -> dict[str, NodeCheck]:
    """The nodes of a pool that can take no part in a test, with what is wrong with them."""
    told = {node.name: all_gather.of_node(node, pool) for node in nodes}
    return {name: NodeCheck(faults=it) for name, it in told.items() if it}


def problems(tested: Tested) -> Iterator[Problem]:
    """What is wrong with a pool."""
    pool, tried = tested.pool, tested.tried
    yield from diagnosis.of_single(
        tested.checked, lambda _: pool.machine_type, lambda name: _another(tested, (name,))
    )
    if tested.told and _on_sockets(tested.told.whole, pool, len(tested.nodes))[0]:
        yield diagnosis.failed(
            "NCCL used plain sockets instead of the GPU network",
            why="it is the same on each node, so no single one is at fault: NCCL's plugin is not"
            " installed, or does not find its interfaces",
            fix="check kubectl --namespace kube-system get daemonsets, and the installer's log",
        )
        return
    if tried and len(tried[0].members) == 1 and not tried[0].passed:
        yield diagnosis.failed(
            f"{tried[0].members[0]}: {tried[0].why}",
            why="NCCL's test ran on its own GPUs; the log above says where it ended",
            fix=_another(tested, tried[0].members),
        )
        return
    remedies = Remedies(
        members="nodes",
        another=lambda names: _another(tested, names),
        more="run Test --nodes 3, or with more, if the pool may have as many",
        closer="set ENABLE_COMPACT_PLACEMENT=yes, which new pools alone can have",
    )
    bar = diagnosis.bar(pool.machine_type, tested.figures)
    yield from diagnosis.problems(tested.finding, tried, bar, remedies)
    if tested.ray is not None and not tested.ray.passed:
        yield diagnosis.failed(
            f"the test through Ray failed on {pool.name}: {tested.ray.why}",
            why="a RayJob was to use each GPU of its nodes once",
            fix="look at Ray's operator: kubectl get rayjobs,rayclusters; then run Test again",
        )


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


def _on_sockets(whole: all_gather.Measurement, pool: GpuPool, nodes: int) -> tuple[bool, set[int]]:
    """Whether no node used the network of its GPUs; and where some did, who did not, by number."""
    hosts = all_gather.on_sockets(whole, pool) if nodes >= bandwidths.MACHINES else frozenset()
    if not hosts or len(hosts) >= len(whole.used):
        return bool(hosts), set()
    numbers = {int(found[1]) for host in hosts if (found := _HOST.search(host))}
    return False, {number for number in numbers if number < nodes}


def _another(tested: Tested, names: tuple[str, ...]) -> str:
    """How to have other nodes in the place of some, by how the pool gets its nodes (jobs.md, 6)."""
    named = " ".join(names)
    if set(names) <= set(tested.cordoned):
        cordon = f"it is cordoned (undo: kubectl uncordon {named})"
    else:
        cordon = f"keep jobs away: kubectl cordon {named}, or Test --cordon"
    means = tested.pool.mode.means
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
