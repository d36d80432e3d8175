"""What is deployed: all of a bucket, as Status lists it without NAME_PREFIX, and older machines."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from provision.documents.cost import Amount
from provision.documents.status import PoolNow


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """One deployment, in short."""

    name: Annotated[str, "NAME_PREFIX"]
    state: Annotated[str, 'the folder with its state, "gs://..."']
    kind: Annotated[str | None, 'the kind, such as "mig" or "gke"; None if that can\'t be read'] = (
        None
    )
    words: Annotated[str, 'what it is in a few words, such as "VM group"'] = ""
    zone: Annotated[str | None, "the zone of its machines; None if not known"] = None
    machines: Annotated[
        tuple[PoolNow, ...], "what was asked for, and what is, by group or node pool"
    ] = ()
    hours: Annotated[
        Decimal | None, "the age of the oldest of what is billed, in hours; None if not known"
    ] = None
    cost: Annotated[Amount | None, "what it costs now, by list prices; None if not known"] = None
    in_order: Annotated[bool, "whether nothing is broken"]
    trouble: Annotated[tuple[str, ...], "what is broken, the worst first"] = ()
    pending: Annotated[bool, "whether something is under way or waits"] = False


@dataclass(frozen=True, kw_only=True)
class OlderMachine:
    """A machine that was made before the settings changed."""

    name: Annotated[str, "its name"]
    differences: Annotated[tuple[str, ...], "what differs, in words"]
