"""The plan of a Create: what is made, where, how it is got, what it costs, when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import limits
from provision.documents.cost import PartKind
from provision.documents.plan import Change
from provision.documents.topology import NetworkRole, Reach, StoreKind
from provision.screens import amounts, layout
from provision.screens.layout import LABEL, Line, Look, Row
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.documents.cost import Cost
    from provision.documents.plan import Checks, Identity, Plan
    from provision.documents.topology import Machines, Network, Store, Topology

_NOUNS: Final = 5
"""Nouns that are counted one by one; the rest is "more"."""
_FEWEST: Final = 3
"""At least so many nouns, where there is little room."""
_RDMA: Final = "MRDMA"
_HINT: Final = "Plan --full shows all"


def lines(
    plan: Plan, cost: Cost | None, width: int, *, older: int = 0, hint: bool = True
) -> list[Line]:
    """The screen of a plan.

    Args:
        plan: The plan.
        cost: What the cluster costs; None if that was not asked for.
        width: The columns.
        older: VMs that are older than the settings, although nothing changes.
        hint: Whether to name the option that shows Terraform's own text.
    """
    rows = list(_made(plan, cost) if _is_whole(plan) else _changed(plan, cost))
    tail = _HINT if hint and plan.change is not Change.NOTHING else ""
    end = fitting(lambda most: summary(plan, older, most), width - len(tail) - 2)
    return [
        *layout.wrapped(_title(plan), width, rest="    ", look=Look.TITLE),
        *(line for row in rows for line in row.lines(width)),
        *_checks(plan.checks, width),
        *layout.ended(end, tail, width),
    ]


def summary(plan: Plan, older: int = 0, most: int = _NOUNS) -> str:
    """One sentence that counts what happens, by what people call it.

    Args:
        plan: The plan.
        older: VMs that are older than the settings, although nothing changes.
        most: How many nouns are counted one by one.
    """
    if plan.change is Change.NOTHING:
        if older:
            vms = layout.counted(older, "VM")
            are = "is" if older == 1 else "are"
            return f"No changes by Terraform, but {vms} {are} older than the settings."
        return "No changes: what exists is what the settings describe."
    parts = [f"{plan.imported} to import"] if plan.imported else []
    for verb, numbers in (
        ("add", [(it.noun, it.add) for it in plan.counts]),
        ("change", [(it.noun, it.change) for it in plan.counts]),
        ("destroy", [(it.noun, it.destroy) for it in plan.counts]),
    ):
        found = [(noun, number) for noun, number in numbers if number]
        if found:
            parts.append(f"{sum(number for _, number in found)} to {verb} ({nouns(found, most)})")
    return f"Plan: {', '.join(parts) or 'outputs change, and nothing else'}."


def fitting(sentence: Callable[[int], str], room: int) -> str:
    """A sentence with as many nouns as fit on a line; with the usual number where too few would.

    Args:
        sentence: The sentence with at most so many nouns.
        room: The columns for it.
    """
    tried = [sentence(most) for most in range(_NOUNS, _FEWEST - 1, -1)]
    return next((it for it in tried if len(it) <= room), tried[0])


def nouns(counted: Sequence[tuple[str, int]], most: int = _NOUNS) -> str:
    """What there is how often, such as "group, template, 2 roles".

    Args:
        counted: What it is called and how many there are, what matters most first.
        most: How many are named; the rest is "more".
    """
    named, rest = counted[:most], counted[most:]
    if len(rest) == 1:
        named, rest = counted, []
    words = [noun if number == 1 else layout.counted(number, noun) for noun, number in named]
    more = sum(number for _, number in rest)
    return ", ".join([*words, f"{more}{layout.GLUE}more"] if more else words)


def _is_whole(plan: Plan) -> bool:
    """Whether everything is shown, or only what changes."""
    return plan.change in {Change.NEW, Change.GOES_ON}


def _title(plan: Plan) -> str:
    contents, zones = plan.contents, _zones(plan.topology)
    where = f"{contents.words} in {contents.place}"
    if zones != [contents.place]:
        where += f", machines in {', '.join(zones)}"
    match plan.change:
        case Change.NEW:
            state = "new"
        case Change.GOES_ON:
            state = "goes on where an earlier Create ended"
        case Change.CHANGE:
            state = "changes"
        case Change.NOTHING:
            state = "exists"
    return f"{plan.topology.name}   {where}   {state}"


def _zones(topology: Topology) -> list[str]:
    own = [it.zone for it in topology.machines if not it.is_system]
    return list(dict.fromkeys(own))


def _made(plan: Plan, cost: Cost | None) -> Iterator[Row]:
    """Everything that the settings describe."""
    topology, contents = plan.topology, plan.contents
    group = topology.machines[0] if len(topology.machines) == 1 else None
    yield from _machines(topology, cost if group else None)
    yield from _disks(topology, cost if group else None)
    for number, store in enumerate(topology.stores):
        right = _price(cost, PartKind.SHARES) if number == 0 else ""
        yield Row("storage" if number == 0 else "", _store(store), right)
    yield Row("network", _networks(topology))
    yield Row("public", _public(topology))
    if contents.identities:
        yield Row("accounts", "; ".join(map(_identity, contents.identities)))
    if contents.image:
        yield Row("image", contents.image)
    if contents.software:
        yield Row("in it", ", ".join(contents.software))
    yield Row("ends", _ends(plan))
    yield from _cost(plan, cost)


def _changed(plan: Plan, cost: Cost | None) -> Iterator[Row]:
    """What changes, what is lost, what stays."""
    if plan.settings:
        words = "; ".join(f"{it.setting} {it.words}" for it in plan.settings)
        yield Row("changes", words)
    kept = plan.kept
    for loss in plan.losses:
        # What a new template means is told by what is kept.
        if kept is None or loss.noun != "template":
            yield Row("loses", loss.words, look=Look.BAD)
    if kept is not None:
        vms = layout.counted(kept.machines, "VM")
        one = kept.machines == 1
        yield Row("keeps", f"{vms} that {'runs' if one else 'run'}: {kept.words}")
        if kept.new:
            yield Row("new VMs", kept.new)
        if kept.command:
            yield Row("anew", f"to make {'it' if one else 'them'} anew now: {kept.command}")
    yield from _cost(plan, cost)


# ------------------------------------------------------------------ machines


def _machines(topology: Topology, cost: Cost | None) -> Iterator[Row]:
    if len(topology.machines) == 1:
        (group,) = topology.machines
        text = "   ".join(filter(None, [_number(group), _gpus(group), _got(group)]))
        yield Row("machines", text, _price(cost, PartKind.MACHINES))
        return
    zones = _zones(topology)
    cells = [
        (
            it.name,
            _number(it),
            _gpus(it),
            _got(it) + (f", {it.zone}" if len(zones) > 1 or it.zone not in zones else ""),
        )
        for it in topology.machines
    ]
    for number, text in enumerate(layout.columns(cells)):
        yield Row("pools" if number == 0 else "", text)


def _number(it: Machines) -> str:
    if it.first == it.most:
        return f"{it.most:,} x {it.machine_type}"
    return f"{it.first:,} to {it.most:,} x {it.machine_type}"


def _gpus(it: Machines) -> str:
    return f"{it.gpus} x {it.gpu}" if it.gpus and it.gpu else "no GPUs" if not it.is_system else ""


def _got(it: Machines) -> str:
    """How they are got, in words."""
    words = Mode(it.mode).means.words
    if it.reservation:
        words += f" {it.reservation}"
    return words + (", close together" if it.is_compact else "")


def _disks(topology: Topology, cost: Cost | None) -> Iterator[Row]:
    found: dict[str, list[str]] = {}
    for it in topology.machines:
        words = f"{it.boot_disk_gb:,} GB {it.boot_disk_type}"
        if it.local_ssd_gb:
            words += f", and {it.local_ssd_gb:,} GB of local SSD"
        found.setdefault(words, []).append(it.name)
    if len(found) == 1:
        (words,) = found
        each = " each" if topology.machines[0].most > 1 or len(topology.machines) > 1 else ""
        yield Row("boot disk", words + each, _price(cost, PartKind.DISKS))
        return
    texts = [f"{words} ({', '.join(names)})" for words, names in found.items()]
    for number, text in enumerate(texts):
        yield Row("boot disk" if number == 0 else "", text)


def _store(store: Store) -> str:
    match store.kind:
        case StoreKind.BUCKET:
            return f"bucket gs://{store.name} at {store.path}"
        case StoreKind.FILESTORE:
            size = f"{store.size_gb:,} GB" if store.size_gb else ""
            return f"makes a Filestore {store.tier} {size} at {store.path}; it ends with Destroy"


# ------------------------------------------------------------------ network and accounts


def _networks(topology: Topology) -> str:
    count = sum(it.count for it in topology.networks if it.is_made)
    words = ", ".join(map(_network, topology.networks))
    return f"makes {count}: {words}" if count else words


def _network(it: Network) -> str:
    match it.role:
        case NetworkRole.FIRST if not it.is_made:
            return "the project's default"
        case NetworkRole.FIRST:
            return "main with Cloud NAT" if it.has_nat else "main"
        case NetworkRole.GPUS if it.nic_type == _RDMA:
            return f"RDMA with {layout.counted(it.subnets, 'subnetwork')}"
        case NetworkRole.GPUS:
            return f"{it.count} for the GPUs" if it.count > 1 else "one for the GPUs"
        case NetworkRole.MORE:
            return f"{it.count} more" if it.count > 1 else "a second gVNIC"


def _public(topology: Topology) -> str:
    """What can be reached from the internet, and how one gets in."""
    open_ = [it for it in topology.doors if it.reach in {Reach.INTERNET, Reach.RANGES}]
    ways = [it for it in topology.doors if it.reach is Reach.IDENTITY]
    if open_:
        return "; ".join(f"{it.name.removeprefix('public ')} {it.words}" for it in open_)
    known = "; ".join(f"{it.name} ({it.words})" for it in ways)
    return "no public addresses" + (f"; {known}" if known else "")


def _identity(it: Identity) -> str:
    if not it.made:
        return f"{it.bearer} act as {it.account}"
    rights = [_glued(len(it.roles), "role")] if it.roles else []
    if it.buckets:
        rights.append(f"roles on {_glued(len(it.buckets), 'bucket')}")
    return f"makes {it.account} for {it.bearer}" + (f", {' and '.join(rights)}" if rights else "")


def _glued(number: int, noun: str) -> str:
    return layout.counted(number, noun).replace(" ", layout.GLUE)


# ------------------------------------------------------------------ end and cost


def _ends(plan: Plan) -> str:
    """When machines end by themselves."""
    own = [it for it in plan.topology.machines if not it.is_system]
    modes = {Mode(it.mode) for it in own}
    bound = any(mode.means.bound for mode in modes)
    spot = "; Google can end Spot machines at any time" if Mode.SPOT in modes else ""
    limited = [it for it in own if it.max_run_seconds is not None]
    if not limited and all(mode.means.queued for mode in modes):
        longest = amounts.span(limits.LONGEST_RUN)
        return f"each GPU node as its job asks, after {longest} at most; the rest never by itself"
    if not limited:
        if bound:
            return f"machines end with their reservation; the rest never by itself{spot}"
        limit = plan.contents.limit
        would = f" ({limit} would end its machines)" if limit else ""
        return f"never by itself{would}{spot}"
    each = "VM" if len(plan.topology.machines) == 1 else "GPU node"
    spans = list(dict.fromkeys(it.max_run_seconds for it in limited))
    if len(spans) == 1 and len(limited) == len(own):
        which = f"each {each} {amounts.span(spans[0] or 0)} after it came"
    else:
        which = ", ".join(
            f"each node of {it.name} {amounts.span(it.max_run_seconds or 0)} after it came"
            for it in limited
        )
    return f"{which}; the rest never by itself{spot}"


def _cost(plan: Plan, cost: Cost | None) -> Iterator[Row]:
    if cost is None:
        return
    text = amounts.per_hour_and_day(cost.now)
    if cost.most.per_hour != cost.now.per_hour or cost.most.unknown != cost.now.unknown:
        text = f"now {text}; with {_all(plan.topology)} {amounts.per_hour_and_day(cost.most)}"
    if cost.at_most_in_all is not None:
        text += f"; at most {amounts.usd(cost.at_most_in_all)} till they end"
    yield Row("costs", text)
    unknown = cost.most.unknown or cost.now.unknown
    if unknown:
        yield Row("unknown", f"the price of {'; '.join(unknown)}")


def _all(topology: Topology) -> str:
    """All machines that can come, in words."""
    own = [it for it in topology.machines if not it.is_system]
    count = sum(it.most for it in own)
    if len(topology.machines) == 1:
        return f"all {count:,} VMs" if count > 1 else "the VM"
    return f"all {count:,} GPU nodes" if count > 1 else "the GPU node"


def _price(cost: Cost | None, kind: PartKind) -> str:
    """What the parts of a kind cost, for the right end of a row."""
    return amounts.of_parts(it for it in cost.parts if it.kind is kind) if cost else ""


# ------------------------------------------------------------------ checks


def _checks(checks: Checks | None, width: int) -> Iterator[Line]:
    if checks is None or not checks.made:
        return
    parts = []
    if checks.permissions:
        parts.append(layout.counted(checks.permissions, "permission"))
    if checks.apis:
        parts.append(f"{checks.apis} APIs")
    for quota in checks.quotas:
        if "GPU" in quota.metric and "ALL_REGIONS" not in quota.metric and quota.limit is not None:
            used = (
                f"{quota.used} of {quota.limit} used"
                if quota.used is not None
                else (f"of {quota.limit}")
            )
            parts.append(f"quota {quota.metric} {used}")
    parts.append(f"{_glued(checks.made, 'check')} in {checks.seconds:.1f}{layout.GLUE}s")
    lead = "  ok".ljust(LABEL + 2)
    yield from layout.wrapped(
        ", ".join(parts), width, first=lead, rest=" " * len(lead), look=Look.GOOD
    )
    if checks.skipped:
        words = f"SKIP_CHECKS: {', '.join(checks.skipped)}"
        lead = "  skipped".ljust(LABEL + 2)
        yield from layout.wrapped(words, width, first=lead, rest=" " * len(lead), look=Look.WARN)
