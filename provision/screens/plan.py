"""The plan of a Create: what is made, where, how it is got, what it costs; and of a Destroy."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision import words
from provision.documents.cost import PartKind
from provision.documents.plan import Change
from provision.screens import amounts, cluster, layout
from provision.screens.layout import Line, Look, Row
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.documents.cost import Amount, Cost
    from provision.documents.deployed import Ending
    from provision.documents.plan import Candidate, Checks, Plan, Quota
    from provision.documents.topology import Topology

_NOUNS: Final = 5  # nouns that are counted one by one; the rest is "more"
_FEWEST: Final = 3  # at least so many nouns, where there is little room
_PARTS: Final = {
    **{kind: str(kind).replace("_", " ") for kind in PartKind},
    PartKind.NAT: "NAT",
}
"""What parts of no pool are called."""
_MOST_ZONES: Final = 8  # zones that are shown one by one
_HINT: Final = "Plan --full shows all"


def lines(
    plan: Plan, cost: Cost | None, width: int, *, older: int = 0, hint: bool = True
) -> list[Line]:
    """The screen of a plan.

    `cost`: what the cluster costs; None if that was not asked for. `older`: VMs that are older than
    the settings, although nothing changes.
    """
    rows = [*(cluster.rows(plan, cost) if _is_whole(plan) else _changed(plan))]
    rows += [*_opens(plan), *_writers(plan), *_cost(plan, cost), *_zones(plan)]
    tail = _HINT if hint and plan.change is not Change.NOTHING else ""
    end = fitting(lambda most: summary(plan, older, most), width - len(tail) - 2)
    return [
        *layout.wrapped(_title(plan), width, rest="    ", look=Look.TITLE),
        *(line for row in rows for line in row.lines(width)),
        *_checks(plan.checks, width),
        *layout.ended(end, tail, width),
    ]


def summary(plan: Plan, older: int = 0, most: int = _NOUNS) -> str:
    """One sentence that counts what happens, by what people call it; `older` as of `lines`."""
    if plan.change is Change.NOTHING:
        if older:
            vms = counted(older, "VM")
            are = "is" if older == 1 else "are"
            return f"No changes by Terraform, but {vms} {are} older than the settings."
        if plan.settings:
            named = words.listed([it.setting for it in plan.settings])
            return f"No changes by Terraform, which makes nothing of what {named} asks for."
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
    return f"Plan: {', '.join(parts)}."


def fitting(sentence: Callable[[int], str], room: int) -> str:
    """A sentence with as many nouns as fit on a line; with the usual number where too few would."""
    tried = [sentence(most) for most in range(_NOUNS, _FEWEST - 1, -1)]
    return next((it for it in tried if len(it) <= room), tried[0])


def nouns(many: Sequence[tuple[str, int]], most: int = _NOUNS) -> str:
    """What there is how often, what matters most first, such as "group, template, 2 roles"."""
    named, rest = many[:most], many[most:]
    if len(rest) == 1:
        named, rest = many, []
    found = [noun if number == 1 else counted(number, noun) for noun, number in named]
    more = sum(number for _, number in rest)
    return ", ".join([*found, f"{more}{layout.GLUE}more"] if more else found)


def _is_whole(plan: Plan) -> bool:
    """Whether everything is shown, or only what changes."""
    return plan.change in {Change.NEW, Change.GOES_ON}


def _title(plan: Plan) -> str:
    contents, zones = plan.contents, cluster.zones(plan.topology)
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


def _changed(plan: Plan) -> Iterator[Row]:
    """What changes, what is lost, what stays."""
    if plan.settings:
        yield Row("changes", "; ".join(f"{it.setting} {it.words}" for it in plan.settings))
    if plan.again:
        ended = "one that has ended" if plan.again == 1 else "those that have ended"
        come = f"{counted(plan.again, 'VM')} {'comes' if plan.again == 1 else 'come'}"
        yield Row("machines", f"{come} in place of {ended} (MAX_RUN_DURATION) or been deleted")
    kept = plan.kept
    for loss in plan.losses:
        # What a new template means is told by what is kept.
        if kept is None or loss.noun != "template":
            yield Row("loses", loss.words, look=Look.BAD)
    if kept is not None:
        vms = counted(kept.machines, "VM")
        one = kept.machines == 1
        yield Row("keeps", f"{vms} that {'runs' if one else 'run'}: {kept.words}")
        if kept.new:
            yield Row("new VMs", kept.new)
        if kept.command:
            yield Row("now", f"to replace {'it' if one else 'them'}: {kept.command}")


def _opens(plan: Plan) -> Iterator[Row]:
    """What a Create opens: for others in the color of losses."""
    for it in plan.opens:
        look = Look.BAD if it.outside else Look.WARN
        yield Row("opens", it.words, look=look)


def _writers(plan: Plan) -> Iterator[Row]:
    """Who may change the state, and with it what the next run does."""
    if plan.newer_tool:
        yield Row("made by", f"version {plan.newer_tool} of this program, which is newer")
    if plan.writers and plan.change is not Change.NOTHING:
        yield Row("state", f"may be changed by you; {'; '.join(plan.writers)}")


# ------------------------------------------------------------------ cost


def _cost(plan: Plan, cost: Cost | None) -> Iterator[Row]:
    if cost is None:
        return
    text = _sums(cost, _all(plan.topology))
    if plan.kept is not None and plan.kept.new:
        text += ", once all VMs are new"
    if cost.before is not None and cost.before != cost.most.per_hour:
        text += f"; before {amounts.usd(cost.before)}/h"
    yield Row("costs", text)
    if len(plan.topology.machines) > 1:
        yield Row("parts", "; ".join(_shares(plan.topology, cost)))
    yield from _not_certain(cost)


def of_settings(cost: Cost, width: int) -> Iterator[Line]:
    """What an env.list costs, where nothing is planned."""
    for row in (Row("costs", _sums(cost, "all machines that can come")), *_not_certain(cost)):
        yield from row.lines(width)


def _sums(cost: Cost, everything: str) -> str:
    """What `everything` costs in an hour once it is there, and in all if that is known."""
    text = amounts.per_hour_and_day(cost.now)
    if cost.most.per_hour != cost.now.per_hour or cost.most.unknown != cost.now.unknown:
        text = f"now {text}; with {everything} {amounts.per_hour_and_day(cost.most)}"
    if cost.at_most_in_all is not None:
        about = "≈ " if cost.most.is_estimate else ""
        text += f"; at most {about}{amounts.usd(cost.at_most_in_all)} until they end"
    return text


def _not_certain(cost: Cost) -> Iterator[Row]:
    for why in dict.fromkeys(part.outdated for part in cost.parts if part.outdated):
        names = "; ".join(part.name for part in cost.parts if part.outdated == why)
        yield Row("estimate", f"{names}: {why}")
    unknown = cost.most.unknown or cost.now.unknown
    if unknown:
        yield Row("unknown", f"the price of {'; '.join(unknown)}")


def _shares(topology: Topology, cost: Cost) -> Iterator[str]:
    """What the total is made of: each pool with its disks and addresses, and the rest."""
    pools = [it.name for it in topology.machines]
    for name in pools:
        short = name.removeprefix(f"{topology.name}-")
        yield f"{short} {amounts.of_parts(it for it in cost.parts if it.pool == name)}"
    rest = [it for it in cost.parts if it.pool not in pools]
    if rest:
        names = dict.fromkeys(_PARTS[it.kind] for it in rest)
        yield f"{', '.join(names)} {amounts.of_parts(rest)}"


def _all(topology: Topology) -> str:
    """All machines that can come, in words: on GKE the nodes of the system pool too."""
    count = sum(it.most for it in topology.machines)
    if len(topology.machines) == 1:
        return f"all {count:,} VMs" if count > 1 else "the VM"
    return f"all {count:,} nodes"


# ------------------------------------------------------------------ zones


def _zones(plan: Plan) -> Iterator[Row]:
    """The zones and ways that leave a choice, in the order in which they are tried."""
    shown = plan.candidates[:_MOST_ZONES]
    table = [
        [
            it.zone,
            *([it.way.replace("_", " ")] if it.way else []),
            "?" if it.per_hour is None else f"{amounts.usd(it.per_hour)}/h",
            _speaks(it),
        ]
        for it in shown
    ]
    for number, line in enumerate(layout.columns(table)):
        # What is against it may be long: the columns before it stay columns.
        yield Row("" if number else "zones", line.replace("  ", 2 * layout.GLUE))
    rest = len(plan.candidates) - len(shown)
    if rest:
        tried = sum(not it.against for it in plan.candidates[_MOST_ZONES:])
        yield Row("", f"and {rest} more, of which {tried} may be tried; the JSON has them all")


def _speaks(candidate: Candidate) -> str:
    """What is known of a zone."""
    if candidate.against:
        return f"not tried: {candidate.against}"
    known = [words for it in candidate.quotas if (words := _used(it))]
    if candidate.reservation:
        known.append(f"reservation {candidate.reservation}")
    if candidate.obtainability is not None:
        known.append(f"Google: {candidate.obtainability:.0%} likely")
    if candidate.uptime_seconds:
        known.append(f"most run {amounts.span(candidate.uptime_seconds)}")
    return ", ".join([*known, *candidate.remarks])


def _used(quota: Quota) -> str:
    """How much of a region's quota of GPUs is used; "" for what says nothing."""
    if "GPU" not in quota.metric or "ALL_REGIONS" in quota.metric or quota.limit is None:
        return ""
    used = f"{quota.used} of {quota.limit} used" if quota.used is not None else f"of {quota.limit}"
    return f"quota {quota.metric} {used}"


# ------------------------------------------------------------------ checks


def _checks(checks: Checks | None, width: int) -> Iterator[Line]:
    if checks is None or not checks.made:
        return
    parts = []
    if checks.permissions:
        parts.append(counted(checks.permissions, "permission"))
    if checks.apis:
        parts.append(f"{checks.apis} APIs")
    parts += filter(None, map(_used, checks.quotas))
    parts.append(f"{layout.glued(checks.made, 'check')} in {checks.seconds:.1f}{layout.GLUE}s")
    yield from Row("ok", ", ".join(parts), look=Look.GOOD).lines(width)
    if checks.skipped:
        skipped = f"SKIP_CHECKS: {', '.join(checks.skipped)}"
        yield from Row("skipped", skipped, look=Look.WARN).lines(width)


# ------------------------------------------------------------------ of a Destroy


def of_destroy(ending: Ending, cost: Cost | None, width: int) -> list[Line]:
    """The screen of a Destroy."""
    title = f"{ending.name}   {ending.words} in {ending.zone}   ends"
    return [
        *layout.wrapped(title, width, rest="    ", look=Look.TITLE),
        *(line for row in _what_ends(ending, cost) for line in row.lines(width)),
        *layout.wrapped(
            fitting(lambda most: _sum_of_destroy(ending, most), width), width, rest="    "
        ),
    ]


def _what_ends(ending: Ending, cost: Cost | None) -> Iterator[Row]:
    for number, there in enumerate(ending.machines or ("none run",)):
        yield Row("machines" if number == 0 else "", there)
    for number, held in enumerate(ending.data):
        yield Row("for ever" if number == 0 else "", held.words, look=Look.BAD)
    if not ending.data:
        yield Row("data", "boot disks and local SSDs alone; buckets stay")
    if cost is not None and (cost.now.per_hour or cost.now.unknown):
        yield Row("costs", f"{amounts.per_hour_and_day(cost.now)} end with it")
    elif ending.hourly is not None:
        most = amounts.usd(Decimal(ending.hourly))
        yield Row("costs", f"up to {most}/h, as the last Create said, end with it")


def _sum_of_destroy(ending: Ending, most: int) -> str:
    count = sum(ending.counts.values())
    what = f" ({nouns(list(ending.counts.items()), most)})" if count else ""
    return f"Destroy: {counted(count, 'resource')} in the state{what}."


def ready(
    rows: Sequence[tuple[str, str]],
    width: int,
    *,
    seconds: float | None = None,
    remark: str = "",
    amount: Amount | None = None,
) -> Iterator[Line]:
    """The end of a Create.

    `rows`: what there is to know: its name, and a command, a URL or a few words. `seconds`: how
    long it took; None if not everything is ready. `remark`: what else is to be said of it, such as
    that no node runs yet.
    """
    if seconds is None:
        yield Line("What there is, although not all of it is ready:", Look.TITLE)
    else:
        text = " ".join(filter(None, [f"Ready after {amounts.clock(seconds)}.", remark]))
        yield from layout.wrapped(text, width, rest="    ", look=Look.GOOD)
    for label, text in rows:
        yield from Row(label, text).lines(width)
    costs = f"It costs {amounts.per_hour(amount)} from now on. " if amount else ""
    then = "" if seconds is None else "Next: Run -- COMMAND, Test, Status; "
    yield from layout.wrapped(f"{costs}{then}Destroy ends it.", width, rest="    ")
