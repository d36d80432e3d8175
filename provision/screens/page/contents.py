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
    """One run, as the page tells of it.

    Attributes:
        action: The action's name.
        version: The program's version.
        made: When the page was made, in UTC.
        topology: What the cluster consists of.
        rehearsal: Whether Google Cloud was simulated.
        cost: What it costs; None if that is not known.
        plan: What the plan changes, and the checks before it; None as long as there is none.
        timeline: The stages of the run.
        seconds: How long the run took, in seconds of Google's clock; None if that is not known.
        problems: What made the run fail; none if it did not.
        notes: What is worth knowing.
        connection: How to connect: what -> command or address, as a text.
        settings: Setting -> effective value, with secrets masked.
    """

    action: str
    version: str
    made: dt.datetime
    topology: Topology
    rehearsal: bool = False
    cost: Cost | None = None
    plan: Plan | None = None
    timeline: Sequence[Stage] = ()
    seconds: float | None = None
    problems: Sequence[Problem] = ()
    notes: Sequence[Problem] = ()
    connection: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
