"""Status for people: the broken first, then what waits, what is, what it costs, when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.documents.gke_status import ClusterNow, GkeCluster, JobState
from provision.documents.status import About, EndedBy, PoolMode
from provision.documents.vm_status import VmGroup
from provision.screens import layout
from provision.screens.layout import Line, Look
from provision.spec.capacity import Mode
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.documents.cost import Amount
    from provision.documents.gke_status import Node, Workload
    from provision.documents.status import End, Older, PoolNow, SoFar, Status, Trouble, Waiting
    from provision.documents.vm_status import SlurmNow, Vm

LABEL: Final = 9
"""Columns of the names at the left."""
_VMS: Final = 10  # the number of VMs, jobs or requests that are listed without --full
_NAMES: Final = 5  # the number of names of machines that have the same trouble, likewise
_PAGES: Final = {"VMs": "console", "Cluster": "console"}  # what the page of the machines is called
_SOON: Final = 86400  # seconds below which an end stands out
_LATELY: Final = 86400  # seconds for which an interruption of a VM that runs again is worth a word
_JOBS: Final = 10  # the number of jobs that are listed without --full
_TOLD: Final = frozenset(
    {JobState.GIVEN_UP, JobState.PENDING, JobState.WAITING_FOR_NODES, JobState.STARTING}
)
"""The states of jobs that stand above already, as broken or waiting."""


def lines(found: Status, width: int, *, full: bool = False) -> Iterator[Line]:
    """The status as lines."""
    if found.kind is None:
        yield from layout.wrapped(f"There is no deployment in {found.state}", width)
        return
    yield from _title(found, width)
    yield from _broken(found.trouble, width, full=full)
    yield from _waiting(found.waiting, width, full=full)
    yield from _older(found.out_of_date, width, full=full)
    for number, it in enumerate(found.happened):
        yield from item("" if number else "happened", it.words, width)
    yield from _machines(found, width)
    yield from _ends(found.ends, width)
    yield from _cost(found, width)
    match found:
        case VmGroup():
            yield from _vms(found, width, full=full)
        case GkeCluster():
            yield from _of_cluster(found, width, full=full)
        case _:
            pass  # a kind without a list of its own
    yield from _rest(found, width, full=full)


# ------------------------------------------------------------------ how it stands


def _title(found: Status, width: int) -> Iterator[Line]:
    where = f"{found.name}   {found.words} in {_place(found)}"
    look = Look.TITLE
    if found.is_unknown:
        verdict, look = "not known", Look.WARN
    elif any(not one.by_itself for one in found.trouble):
        verdict, look = "not in order", Look.BAD
    elif found.trouble:
        verdict, look = "not in order; Google goes on trying", Look.BAD
    elif found.waiting:
        verdict, look = "under way", Look.WARN
    else:
        verdict = "in order"
    for line in layout.ended(where, verdict, width):
        yield Line(line.text, look)
    yield from item("", _in_numbers(found), width)


def _place(found: Status) -> str:
    match found:
        case GkeCluster(cluster=ClusterNow(location=location)):
            return location
        case _:
            return found.zone or ""


def _in_numbers(found: Status) -> str:
    match found:
        case VmGroup(counts=counts):
            wanted = counts.wanted if counts.wanted is not None else counts.exist
            parts = [f"{counts.ready:,} of {counted(wanted, 'VM')} ready"]
            others = {
                "starting up": counts.starting,
                "failed": counts.failed,
                "not heard of": counts.silent,
                "not running": counts.down,
                "out of date": counts.out_of_date,
            }
            return ", ".join(
                [*parts, *(f"{count:,} {how}" for how, count in others.items() if count)]
            )
        case GkeCluster(cluster=None):
            return "the cluster does not exist"
        case GkeCluster(cluster=ClusterNow() as cluster):
            until = cluster.supported_until
            how = "support ended on" if cluster.support_is_over else "supported until"
            support = f" ({how} {until})" if until else ""
            version = f"GKE {cluster.version}{support}, {cluster.status}"
            jobs = ", ".join(f"{count:,} {state}" for state, count in found.jobs.items())
            queue = f"; jobs: {jobs}" if jobs else ""
            outside = f"; {len(found.outside):,} in no queue" if found.outside else ""
            return f"{version}; {_nodes(found.machines)}{queue}{outside}"
        case _:
            return counted(len(found.resources), "resource")


def _nodes(pools: Sequence[PoolNow]) -> str:
    there, ready = [it.there for it in pools], [it.ready for it in pools]
    if None in there:
        return "how many nodes there are is not known"
    nodes = counted(sum(filter(None, there)), "node")
    if None in ready:
        return f"{nodes} run, and how many are ready is not known"
    return f"{sum(filter(None, ready)):,} of {nodes} ready"


def _broken(found: Sequence[Trouble], width: int, *, full: bool) -> Iterator[Line]:
    before = ""
    for one in found:
        label = "unknown" if one.about is About.KUBERNETES else "broken"
        look = Look.WARN if one.about is About.KUBERNETES else Look.BAD
        yield from item("" if label == before else label, one.what, width, look)
        yield from _names(one.names, one.count, width, full=full)
        yield from below(one.why, width)
        yield from hint("fix", one.fix, width)
        before = label


def _waiting(found: Sequence[Waiting], width: int, *, full: bool) -> Iterator[Line]:
    label = "waits"
    for one in found:
        since = f", for {duration(one.seconds)}" if one.seconds is not None else ""
        yield from item(label, one.what + since, width, Look.WARN)
        yield from _names(one.names, one.count, width, full=full)
        yield from below(one.why, width)
        if one.until is not None and one.until_seconds is not None:
            left = duration(one.until_seconds)
            yield from below([f"in {left} ({one.until}) {one.then}"], width)
        yield from hint("do", one.advice, width)
        label = ""


def _names(names: Sequence[str], count: int, width: int, *, full: bool) -> Iterator[Line]:
    """The names of several that have the same; a single one stands in the sentence."""
    if count == 1 or not names:
        return
    shown = names if full else names[:_NAMES]
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    yield from below([", ".join(shown) + more], width)


def _older(found: Sequence[Older], width: int, *, full: bool) -> Iterator[Line]:
    label = "older"
    for one in found:
        what = f"{counted(one.count, 'VM')}: {'; '.join(one.differences)}"
        yield from item(label, what, width, Look.WARN)
        shown = one.names if full else one.names[:_NAMES]
        more = f" and {one.count - len(shown):,} more" if one.count > len(shown) else ""
        yield from below([", ".join(shown) + more], width)
        label = ""
    if found:
        mend = f"{found[0].fix} replaces them, boot disks included; they run until then"
        yield from hint("fix", mend, width)


# ------------------------------------------------------------------ what is


def _machines(found: Status, width: int) -> Iterator[Line]:
    """What was asked for, and what is, by group or pool."""
    lead = f"  {'machines'.ljust(LABEL)}  "
    table = _without_empty([_asked(pool, found.zone) for pool in found.machines])
    rows = layout.columns(table)
    if any(len(lead) + len(row) > width for row in rows):
        rows = ["  ".join(filter(None, row)) for row in table]
    for pool, row in zip(found.machines, rows, strict=True):
        bad = pool.ready is not None and pool.ready < (pool.asked or 0)
        look = Look.WARN if bad else Look.PLAIN
        yield from layout.wrapped(row, width, first=lead, rest=" " * (len(lead) + 4), look=look)
        lead = " " * len(lead)
    match found:
        case VmGroup() if found.image.name:
            yield from item("image", f"{found.image.name} of {found.image.project}", width)
        case _:
            pass
    if isinstance(found, VmGroup) and found.slurm:
        yield from item("slurm", _slurm(found.slurm), width)


def _slurm(now: SlurmNow) -> str:
    nodes = ", ".join(f"{count:,} {state}" for state, count in now.states.items())
    gpus = f"; {now.gpus_in_use:,} of {counted(now.gpus, 'GPU')} in use" if now.gpus else ""
    others = {"run": now.others_running, "wait": now.others_waiting}
    told = ", ".join(f"{count:,} {how}" for how, count in others.items() if count)
    jobs = f"; jobs of others: {told}" if told else ""
    return f"{nodes or 'no nodes'}{gpus}{jobs}; {now.head} leads"


def _without_empty(table: list[list[str]]) -> list[list[str]]:
    """A table without the columns in which no row has anything."""
    kept = [any(column) for column in zip(*table, strict=True)]
    return [[cell for cell, is_kept in zip(row, kept, strict=True) if is_kept] for row in table]


def _asked(pool: PoolNow, zone: str | None) -> list[str]:
    size = _size(pool)
    if pool.most is not None:
        size += f", {pool.least:,} to {pool.most:,}"
    elsewhere = pool.zone if pool.zone != zone else ""
    return [pool.name, size, pool.machine_type, pool.gpus, _mode(pool), elsewhere]


def _size(pool: PoolNow) -> str:
    if pool.there is None:
        return "not known"
    found, is_so = (pool.there, "run") if pool.ready is None else (pool.ready, "ready")
    whole = pool.there if pool.asked is None else pool.asked
    few = f"{found:,}" if found == whole and pool.asked is None else f"{found:,} of {whole:,}"
    return f"{few} {is_so}"


def _mode(pool: PoolNow) -> str:
    match pool.mode:
        case None:
            return ""
        case PoolMode.SYSTEM:
            return "system"
        case mode:
            return Mode(mode.value).means.words


def _ends(found: Sequence[End], width: int) -> Iterator[Line]:
    for number, one in enumerate(found):
        soon = one.first_seconds is not None and one.first_seconds < _SOON
        look = Look.WARN if soon else Look.PLAIN
        yield from item("" if number else "ends", _end(one), width, look)


def _end(one: End) -> str:
    more = f"; {one.words}" if one.words else ""
    match one.how:
        case EndedBy.NEVER:
            return f"{one.what}: no end{more}"
        case EndedBy.RUN | EndedBy.RESERVATION | EndedBy.MAINTENANCE if one.first_seconds is None:
            return f"{one.what}: {one.words}"
        case EndedBy.RUN | EndedBy.RESERVATION:
            return f"{one.what}: {_when(one)}{more}"
        case EndedBy.MAINTENANCE:
            return f"{one.what}: down {_when(one)}{more}"


def _when(one: End) -> str:
    first = duration(one.first_seconds or 0)
    last = duration(one.last_seconds or 0)
    if first == last:
        return f"in {first} ({one.first})"
    return f"the first in {first} ({one.first}), the last in {last} ({one.last})"


# ------------------------------------------------------------------ what it costs


def _cost(found: Status, width: int) -> Iterator[Line]:
    if found.cost is None:
        return
    now, most = found.cost.now, found.cost.most
    text = f"now {_amount(now)}"
    if most.per_hour > now.per_hour or most.unknown != now.unknown:
        text += f"; with everything that can come {_amount(most)}"
    yield from item("costs", text, width)
    if found.so_far is not None:
        yield from below([_so_far(found.so_far)], width)
    if found.in_all is not None:
        text = f"at most ${found.in_all.usd:,.2f} since it began, at {found.in_all.since}"
        yield from below([text], width)
    unknown = dict.fromkeys([*now.unknown, *most.unknown])
    if unknown:
        yield from below([f"unknown: {', '.join(unknown)}"], width)
    dates = sorted({part.dated for part in found.cost.parts if part.dated})
    dated = f" of {dates[0]}" if len(dates) == 1 else f", the oldest of {dates[0]}" if dates else ""
    note = f"list prices{dated}, without tax, traffic and discounts"
    yield from below([note], width, Look.FAINT)


def _amount(amount: Amount) -> str:
    least = "at least " if amount.unknown else ""
    about = "≈ " if amount.is_estimate else ""
    return f"{least}{about}${amount.per_hour:,.2f}/h, ${amount.per_day:,.0f}/day"


def _so_far(amount: SoFar) -> str:
    least = "at least " if amount.unknown else ""
    about = "≈ " if amount.is_estimate else ""
    age = duration(float(amount.hours) * 3600)
    return f"so far {least}{about}${amount.usd:,.2f} for what exists now, the oldest for {age}"


# ------------------------------------------------------------------ lists


def _vms(found: VmGroup, width: int, *, full: bool) -> Iterator[Line]:
    shown = found.vms if full else found.vms[:_VMS]
    counts = found.counts
    if not counts.exist:
        return
    text = f"{len(shown):,} of {counts.exist:,} listed, {counts.failed:,} failed"
    if len(shown) < counts.exist:
        text += "; --full lists all"
    yield from item("VMs", text, width)
    table = [[vm.name, _state(vm, full=full)] for vm in shown]
    yield from listed(table, width)


def _state(vm: Vm, *, full: bool) -> str:
    # The start-up of a VM that is down says nothing: it starts again.
    parts = [vm.startup.words if vm.status == "RUNNING" else vm.status]
    if vm.silence:
        parts += [vm.silence]
    parts += vm.disks
    if vm.slurm and vm.status == "RUNNING":
        its = (
            f" ({vm.slurm.gpus_in_use} of {counted(vm.slurm.gpus, 'GPU')})"
            if vm.slurm.gpus_in_use
            else ""
        )
        parts += [f"{vm.slurm.state} in Slurm{its}"]
    if full and vm.rank is not None:
        parts += [f"rank {vm.rank}"]
    if vm.remaining_seconds is not None:
        parts += [f"{duration(vm.remaining_seconds)} left"]
    if vm.maintenance_seconds is not None:
        begins = duration(vm.maintenance_seconds)
        parts += [f"Google stops it in {begins} to maintain its host"]
    if vm.interruption and vm.interruption.seconds_ago < _LATELY:
        parts += [vm.interruption.words]
    if vm.notebook:
        parts += [vm.notebook]
    return "; ".join(parts)


def _rest(found: Status, width: int, *, full: bool) -> Iterator[Line]:
    for share in found.filestores:
        yield from item("share", f"{share.name} at {share.path}: {share.ip}", width)
    count = counted(len(found.resources), "resource")
    yield from item("state", f"{found.state}, {count}", width)
    for number, one in enumerate(reversed(found.history if full else found.history[-1:])):
        how = "" if one.ended == "done" else f", which ended with {one.ended}"
        text = f"{one.at} {one.action} by {one.who}, version {one.version}{how}"
        yield from item("" if number else "changed", text, width)
    if not full:
        yield from item("more", "--full has links, the last log, the label of the bill", width)
        return
    if found.cluster_id:
        yield from item("bill", f"label aiinfra-cluster={found.cluster_id}", width)
    if found.last_log:
        yield from item("last log", found.last_log, width)
    for title, url in found.links.items():
        yield from item(_PAGES.get(title, title.lower()), url, width)


def _of_cluster(found: GkeCluster, width: int, *, full: bool) -> Iterator[Line]:
    """The nodes with --full, and the jobs that run or have ended."""
    if full and found.nodes:
        yield from item("nodes", f"{len(found.nodes):,} listed", width)
        table = [[node.name, node.pool, _node(node)] for node in found.nodes]
        yield from listed(table, width)
    total = sum(count for state, count in found.jobs.items() if JobState(state) not in _TOLD)
    yield from _jobs("jobs", found.workloads, total, width, full=full)
    outside = [job for job in found.outside if job.state not in _TOLD]
    yield from _jobs("no queue", outside, len(outside), width, full=full)


def _node(node: Node) -> str:
    parts = ["ready" if node.ready else "not ready", *node.faults]
    if node.cordoned:
        parts.append("cordoned")
    if node.remaining_seconds is not None:
        parts.append(f"{duration(node.remaining_seconds)} left ({node.ends})")
    if node.maintenance_seconds is not None:
        begins = duration(node.maintenance_seconds)
        parts.append(f"Google stops it in {begins} to maintain its host ({node.maintenance})")
    return "; ".join(parts)


def _jobs(
    label: str, jobs: tuple[Workload, ...] | list[Workload], total: int, width: int, *, full: bool
) -> Iterator[Line]:
    """The jobs that run or have ended; those that wait or failed stand above."""
    if not total:
        return
    going = [job for job in jobs if job.state not in _TOLD]
    shown = going if full else going[:_JOBS]
    more = "; --full lists all" if len(shown) < total else ""
    yield from item(label, f"{len(shown):,} of {total:,} listed{more}", width)
    yield from listed([[job.name, _job_state(job), _job_place(job)] for job in shown], width)
    for job in shown if full else ():
        yield from below([f"{job.name}: {it}" for it in job.interruptions], width)
        yield from hint(f"log of {job.name}", job.log, width)


def _job_state(job: Workload) -> str:
    pods = job.pods
    if pods is None or job.state is not JobState.RUNNING:
        return str(job.state)
    count = pods.ready
    return f"{job.state}, {count:,} {'pod' if count == 1 else 'pods'}"


def _job_place(job: Workload) -> str:
    found = f"on {', '.join(job.pools)}" if job.pools else ""
    if job.nodes_end_seconds is not None:
        found += f", {duration(job.nodes_end_seconds)} left"
    if job.stops_seconds is not None:
        found += f", limit {duration(job.stops_seconds)}"
    return found


def duration(seconds: float) -> str:
    """A duration, whose number and unit stay on one line."""
    return words.duration(seconds).replace(" ", layout.GLUE)


def item(label: str, text: str, width: int, look: Look = Look.PLAIN) -> Iterator[Line]:
    """A text with its name at the left."""
    lead = f"  {label.ljust(LABEL)}"
    yield from layout.wrapped(text, width, first=lead + "  ", rest=" " * (len(lead) + 2), look=look)


def below(texts: Iterable[str], width: int, look: Look = Look.PLAIN) -> Iterator[Line]:
    """More about the text above."""
    lead = " " * (LABEL + 6)
    for text in texts:
        # Nothing in it may begin as a hint does.
        yield from layout.wrapped(
            words.printable_line(text), width, first=lead, rest=lead, look=look
        )


def hint(name: str, text: str, width: int) -> Iterator[Line]:
    """What to do about the text above; nothing for ""."""
    lead = " " * (LABEL + 6)
    if text:
        rest = lead + " " * (len(name) + 2)
        yield from layout.wrapped(text, width, first=f"{lead}{name}: ", rest=rest)


def listed(table: list[list[str]], width: int) -> Iterator[Line]:
    """A list of things, in columns."""
    for line in layout.columns(table):
        yield from layout.wrapped(line, width, first=" " * 4, rest=" " * 8)
