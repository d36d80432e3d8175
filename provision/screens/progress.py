"""The lines of a run's stages: one for each, with how far it is and how long it has taken."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from provision.documents.timeline import OnInterrupt, StageName, StageState
from provision.screens import amounts, layout
from provision.screens.layout import Line, Look

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.documents.events import WaitingEvent
    from provision.documents.timeline import Stage

TITLES: Final[Mapping[StageName, str]] = {
    StageName.CONNECT: "Google",
    StageName.CHECKS: "checks",
    StageName.EARLIER_RUN: "earlier run",
    StageName.INIT: "Terraform",
    StageName.PLAN: "plan",
    StageName.NETWORKS: "networks",
    StageName.CLUSTER: "cluster",
    StageName.POOLS: "pools",
    StageName.TERRAFORM: "Terraform",
    StageName.REQUESTS: "capacity",
    StageName.MACHINES: "machines",
    StageName.REFRESH: "changed VMs",
    StageName.REPLACEMENT: "new VMs",
    StageName.STARTUP: "start-up",
    StageName.URLS: "notebooks",
    StageName.OBJECTS: "in the cluster",
    StageName.TEST_NODES: "test's nodes",
    StageName.TEST: "test",
    StageName.TEST_CLEANING: "test's end",
    StageName.JOB: "job",
    StageName.IMAGE: "image",
    StageName.RELEASE: "released",
    StageName.SWEEP: "leftovers",
}
_WIDEST_TITLE: Final = max(map(len, TITLES.values()))
_BETWEEN: Final = "this run"  # the title of what is in no stage

_MARKS: Final[Mapping[StageState, tuple[str, Look]]] = {
    StageState.RUNNING: ("...", Look.FAINT),
    StageState.DONE: ("done", Look.GOOD),
    StageState.WAITING: ("wait", Look.WARN),
    StageState.FAILED: ("fail", Look.BAD),
    StageState.INTERRUPTED: ("stop", Look.WARN),
}
_WIDEST_MARK: Final = max(len(mark) for mark, _ in _MARKS.values())
_LEAD: Final = 2 + _WIDEST_MARK + 2 + _WIDEST_TITLE + 2

_QUIET: Final = frozenset(
    {
        *(StageName.CONNECT, StageName.CHECKS, StageName.INIT, StageName.PLAN),
        *(StageName.EARLIER_RUN, StageName.RELEASE, StageName.SWEEP, StageName.TEST_CLEANING),
    }
)
"""Stages whose end is worth no line: what they came to is said in other words, if at all."""

_LEAVES: Final[Mapping[OnInterrupt, str]] = {
    OnInterrupt.NOTHING: "Ctrl-C changes nothing",
    OnInterrupt.KEEPS: "Ctrl-C keeps everything",
    OnInterrupt.SAVES: "Ctrl-C lets Terraform save its state",
    OnInterrupt.STAYS_QUEUED: "Ctrl-C keeps everything, and the request stays in the queue",
    OnInterrupt.ENDS_TEST: "Ctrl-C ends the test and deletes its job",
    OnInterrupt.JOB_GOES_ON: "Ctrl-C leaves the job alone, which goes on",
    OnInterrupt.DESTROYS: "Ctrl-C ends this and destroys the cluster",
    OnInterrupt.LEAVES_REST: "Ctrl-C keeps the rest, which is billed",
}


def ended(stage: Stage, width: int) -> list[Line]:
    """The line of a stage that has ended; none where nobody has to know."""
    if stage.name in _QUIET and stage.state is StageState.DONE:
        return []
    mark, look = _MARKS[stage.state]
    right = amounts.clock(stage.seconds)
    return list(_row(mark, TITLES[stage.name], stage.words or "", right, width, look))


def news(event: WaitingEvent, width: int) -> list[Line]:
    """The lines of news where there is no terminal: what is new, since when, until when."""
    # That everything is kept is no news.
    leaves = "" if event.on_interrupt is OnInterrupt.KEEPS else _LEAVES[event.on_interrupt]
    return _timed(event, leaves, width)


def sign_of_life(event: WaitingEvent, width: int) -> list[Line]:
    """The lines of a stage without news: what it waits for, since when, until when, what if not."""
    mark, look = _MARKS[StageState.RUNNING]
    title = TITLES[event.stage] if event.stage else _BETWEEN
    since = (
        f"goes on for {amounts.clock(event.passed)}"
        if event.most is None
        else f"waits {_long(event.passed)} of {_long(event.most)}"
    )
    text = "; ".join(filter(None, [since, event.words, _LEAVES[event.on_interrupt]]))
    return list(_row(mark, title, text, "", width, look))


def live(stages: Sequence[WaitingEvent], width: int) -> list[Line]:
    """The last lines of a terminal: each open stage, and what an interrupt would leave."""
    if not stages:
        return []
    rows = [row for event in stages for row in _timed(event, "", width)]
    lead = " " * (2 + _WIDEST_MARK + 2)
    leaves = _LEAVES[stages[0].on_interrupt]
    return [*rows, *layout.wrapped(leaves, width, first=lead, rest=lead, look=Look.FAINT)]


def _timed(event: WaitingEvent, leaves: str, width: int) -> list[Line]:
    mark, look = _MARKS[StageState.RUNNING]
    title = TITLES[event.stage] if event.stage else _BETWEEN
    right = amounts.clock(event.passed)
    if event.most is not None:
        right += f" of {amounts.clock(event.most)}"
    text = "; ".join(filter(None, [event.words, leaves]))
    return list(_row(mark, title, text, right, width, look))


def _row(  # noqa: PLR0913, PLR0917 - the columns of a row
    mark: str, title: str, text: str, right: str, width: int, look: Look
) -> Iterator[Line]:
    """A row: mark, title, text in as many lines as it needs, and a time at the first one's end."""
    head = f"  {mark.ljust(_WIDEST_MARK)}  {title.ljust(_WIDEST_TITLE)}  "
    room = max(20, width - _LEAD - (len(right) + 2 if right else 0))
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    first = head + lines[0]
    if right:
        first = first.ljust(width - len(right) - 1) + " " + right
    yield Line(first.rstrip(), look)
    for line in lines[1:]:
        yield Line(" " * _LEAD + line, look)


def _long(seconds: float) -> str:
    """A time with its hours, as in "0:12:00 of 2:00:00"."""
    text = amounts.clock(seconds)
    return text if text.count(":") > 1 else f"0:{text.rjust(5, '0')}"
