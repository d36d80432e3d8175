"""What a Destroy ends."""

from __future__ import annotations

from dataclasses import dataclass

from provision.documents.status import InAll


@dataclass(frozen=True, kw_only=True)
class Held:
    """Something that holds data and is deleted for ever."""

    words: str  # what it is, such as "Filestore np-nfs-1, 2,560 GB, with all its files"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a Destroy ends, before it starts."""

    name: str  # NAME_PREFIX
    words: str  # what it is in a few words, such as "VM group"
    zone: str  # the zone of the deployment
    # what there is, a few words each, such as "2 VMs run: a2-highgpu-2g in us-east1-b, for up to 3
    # h 20 min"
    machines: tuple[str, ...]
    running: int  # how many machines run
    counts: dict[str, int]  # the resources in the state: what they are called -> how many
    data: tuple[Held, ...]  # what holds data and goes with it
    jobs: tuple[str, ...] = ()  # the names of jobs that run or wait for their turn
    # what the last Create said that it costs at most, in USD per hour; None if not known
    hourly: str | None = None
    in_all: InAll | None = None  # what it has cost since it began; None if not known
