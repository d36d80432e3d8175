"""What a report's page is made of: the documents of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from provision.documents.cost import Cost
    from provision.documents.plan import Plan
    from provision.documents.timeline import Stage
    from provision.documents.topology import Topology
    from provision.errors import Problem


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
