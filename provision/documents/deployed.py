"""The deployments of a project's state bucket, as Status without NAME_PREFIX lists them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from provision.documents.cost import Amount
from provision.documents.status import PoolNow


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """One deployment, in short."""

    name: str  # NAME_PREFIX
    state: str  # the folder with its state, "gs://..."
    kind: str | None = None  # the kind, such as "mig" or "gke"; None if that can't be read
    words: str = ""  # what it is in a few words, such as "VM group"
    zone: str | None = None  # the zone of its machines; None if not known
    machines: tuple[PoolNow, ...] = ()  # what was asked for, and what is, by group or node pool
    # the age of the oldest of what is billed, in hours; None if not known
    hours: Decimal | None = None
    cost: Amount | None = None  # what it costs now, by list prices; None if not known
    in_order: bool  # whether nothing is broken
    trouble: tuple[str, ...] = ()  # what is broken, the worst first
    pending: bool = False  # whether something is under way or waits
