"""What is deployed: all of a bucket, older machines, and what a Destroy ends."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from provision.documents.cost import Amount
from provision.documents.status import InAll, PoolNow


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


@dataclass(frozen=True, kw_only=True)
class Held:
    """Something that holds data and is deleted for ever."""

    words: Annotated[str, 'what it is, such as "Filestore np-nfs-1, 2,560 GB, with all its files"']


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a Destroy ends, before it starts."""

    name: Annotated[str, "NAME_PREFIX"]
    words: Annotated[str, 'what it is in a few words, such as "VM group"']
    zone: Annotated[str, "the zone of the deployment"]
    machines: Annotated[
        tuple[str, ...],
        'what there is, a few words each, such as "2 VMs run: a2-highgpu-2g in us-east1-b, for '
        'up to 3 h 20 min"',
    ]
    running: Annotated[int, "how many machines run"]
    counts: Annotated[
        dict[str, int], "the resources in the state: what they are called -> how many"
    ]
    data: Annotated[tuple[Held, ...], "what holds data and goes with it"]
    jobs: Annotated[tuple[str, ...], "the names of jobs that run or wait for their turn"] = ()
    hourly: Annotated[
        str | None,
        "what the last Create said that it costs at most, in USD per hour; None if not known",
    ] = None
    in_all: Annotated[InAll | None, "what it has cost since it began; None if not known"] = None
