"""The deployments of a project's state bucket, as Status without NAME_PREFIX lists them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from provision.documents.cost import Amount
from provision.documents.status import PoolNow


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """One deployment, in short.

    Attributes:
        name: NAME_PREFIX.
        state: The folder with its state, "gs://...".
        kind: The kind, such as "mig" or "gke"; None if that can't be read.
        words: What it is in a few words, such as "VM group".
        zone: The zone of its machines; None if not known.
        machines: What was asked for, and what is, by group or node pool.
        hours: The age of the oldest of what is billed, in hours; None if not known.
        cost: What it costs now, by list prices; None if not known.
        in_order: Whether nothing is broken.
        trouble: What is broken, the worst first.
        pending: Whether something is under way or waits.
    """

    name: str
    state: str
    kind: str | None = None
    words: str = ""
    zone: str | None = None
    machines: tuple[PoolNow, ...] = ()
    hours: Decimal | None = None
    cost: Amount | None = None
    in_order: bool
    trouble: tuple[str, ...] = ()
    pending: bool = False
