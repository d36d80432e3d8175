"""The report of a run as one HTML page: made to be looked at, and to be sent to somebody.

It is one file, and a browser asks nobody for more: no script, no font, no picture from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.documents.plan import Change
from provision.screens import amounts, cluster
from provision.screens.page import html, sections
from provision.screens.page.html import tag, written
from provision.words import counted

if TYPE_CHECKING:
    import datetime as dt
    import xml.etree.ElementTree as ET
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.documents.cost import Amount, Cost
    from provision.documents.plan import Plan
    from provision.documents.timeline import Stage
    from provision.documents.topology import Topology
    from provision.errors import Problem

_STYLE: Final = Path(__file__).with_name("page.css")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing. Whoever hosts it need not trust that."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """One run, as the page tells of it."""

    action: str  # the action's name
    version: str  # the program's version
    made: dt.datetime  # when the page was made, in UTC
    topology: Topology  # what the cluster consists of
    rehearsal: bool = False  # whether Google Cloud was simulated
    cost: Cost | None = None  # what it costs; None if that is not known
    # what the plan changes, and the checks before it; None as long as there is none
    plan: Plan | None = None
    timeline: Sequence[Stage] = ()  # the stages of the run
    # how long the run took, in seconds of Google's clock; None if that is not known
    seconds: float | None = None
    problems: Sequence[Problem] = ()  # what made the run fail; none if it did not
    notes: Sequence[Problem] = ()  # what is worth knowing
    # how to connect: what -> command or address, as a text
    connection: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # setting -> effective value, with secrets masked
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def page(it: Contents, veil: Callable[[str], str] = str) -> str:
    """The page of a run, as the text of an HTML file."""
    name = it.topology.name
    root = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", f"{name}: {it.action}, {it.made:%Y-%m-%d}"),
            tag("link", rel="icon", href="data:,"),
            tag("style", _STYLE.read_text(encoding="utf-8")),
        ),
        tag(
            "body",
            _top(it),
            tag("main", *_sections(it)),
            tag("footer", _foot(it)),
        ),
        lang="en",
    )
    return written(root, veil)


def _top(it: Contents) -> ET.Element:
    topology = it.topology
    badge = tag("span", "rehearsal: Google Cloud was simulated", class_="badge")
    return tag(
        "header",
        tag(
            "p",
            f"{it.action} of a {topology.what} ",
            badge if it.rehearsal else None,
            class_="kicker",
        ),
        tag("h1", topology.name),
        tag("p", _lead(topology), class_="lead"),
        _verdict(it),
        tag("dl", *_facts(it), class_="facts"),
        class_="top",
    )


def _lead(topology: Topology) -> str:
    pools = [pool for pool in topology.machines if not pool.is_system] or topology.machines
    first = pools[0]
    more = f" and {counted(len(pools) - 1, 'more pool')}" if len(pools) > 1 else ""
    return (
        f"{cluster.how_many(first)} {html.TIMES} {first.machine_type}{more} in {first.zone},"
        f" project {topology.project}"
    )


def _verdict(it: Contents) -> ET.Element:
    if it.problems:
        more = len(it.problems) - 1
        text = html.titled(it.problems[0].what) + (f" (and {more} more, below)" if more else "")
        return tag("p", f"{it.action} did not get to its end. {text}", class_="verdict bad")
    if it.action == "Plan":
        if it.plan is not None and it.plan.change is Change.NOTHING:
            return tag("p", "What exists is what the settings describe.", class_="verdict good")
        return tag("p", "Nothing was made: this is what Create would do.", class_="verdict plain")
    took = "" if it.seconds is None else f" after {amounts.clock(it.seconds)}"
    return tag("p", f"Ready{took}.", class_="verdict good")


def _facts(it: Contents) -> Iterator[ET.Element]:
    if it.cost is not None:
        yield from _costs(it, it.cost)
    yield _ending(it.topology)
    yield _gpus(it.topology)
    if it.plan is not None:
        yield _changing(it.plan)
    public = [door for door in it.topology.doors if door.reach == "internet"]
    told = public[0].name.lower() if public else "nothing"
    yield _fact(
        "Open to the internet", told, public[0].words if public else "access through IAM alone"
    )


def _changing(plan: Plan) -> ET.Element:
    counts = plan.counts
    rest = f"{sum(one.change for one in counts)} change, {sum(one.destroy for one in counts)} go"
    return _fact("Resources", f"{sum(one.add for one in counts)} to add", rest)


def _costs(it: Contents, cost: Cost) -> Iterator[ET.Element]:
    """What it costs; one number where all machines are there at the end of a Create."""
    scales = any(pool.first != pool.most for pool in it.topology.machines)
    if it.action == "Create" and not (it.problems or scales):
        yield _amount("Costs from now on", cost.most)
    elif cost.most.per_hour == cost.now.per_hour:
        yield _amount("Costs", cost.now)
    else:
        yield _amount("Costs at once", cost.now)
        yield _amount("With all machines", cost.most)


def _amount(name: str, it: Amount) -> ET.Element:
    return _fact(name, amounts.per_hour(it), html.per_day(it))


def _fact(name: str, value: str, more: str = "") -> ET.Element:
    return tag("div", tag("dt", name), tag("dd", value), tag("dd", more) if more else None)


def _ending(topology: Topology) -> ET.Element:
    runs = {pool.max_run_seconds for pool in topology.machines if not pool.is_system}
    limited = sorted(run for run in runs if run is not None)
    if not limited:
        return _fact("Ends", "at Destroy only", "nothing expires")
    rest = (
        "everything else at Destroy"
        if None in runs or topology.what == "GKE cluster"
        else ("what is left after that costs until Destroy")
    )
    return _fact("Each machine ends", f"after {amounts.span(limited[-1])}", rest)


def _gpus(topology: Topology) -> ET.Element:
    first = sum(pool.first * pool.gpus for pool in topology.machines)
    most = sum(pool.most * pool.gpus for pool in topology.machines)
    kinds = ", ".join(dict.fromkeys(pool.gpu for pool in topology.machines if pool.gpu))
    number = f"{most:,}" if first == most else f"{first:,} to {most:,}"
    machines = sum(pool.most for pool in topology.machines if pool.gpus)
    return _fact("GPUs", number, f"{kinds} on {counted(machines, 'machine')}")


def _sections(it: Contents) -> Iterator[ET.Element]:
    if it.problems:
        yield sections.problems("What went wrong", it.problems, "problems")
    loses = it.plan is not None and it.plan.losses
    if loses and it.plan:
        yield sections.changes(it.plan)
    yield sections.topology(it.topology)
    if it.timeline:
        yield sections.timeline(it.timeline)
    if it.cost is not None:
        yield sections.cost(it.cost)
    if it.plan and not loses:
        yield sections.changes(it.plan)
    if it.plan and it.plan.checks:
        yield sections.checks(it.plan.checks)
    if it.connection:
        yield sections.connection(it.connection)
    if it.notes:
        yield sections.problems("Worth knowing", it.notes, "notes")
    if it.settings:
        yield sections.settings(it.settings)


def _foot(it: Contents) -> ET.Element:
    return tag(
        "p",
        f"Made by aiinfra {it.version} on {it.made:%Y-%m-%d at %H:%M} UTC. This file is whole:"
        " it loads nothing from anywhere.",
    )
