"""What a Destroy ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Held:
    """Something that holds data and is deleted for ever.

    Attributes:
        words: What it is, such as "Filestore np-nfs-1, 2,560 GB, with all its files".
    """

    words: str


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a Destroy ends, before it starts.

    Attributes:
        name: NAME_PREFIX.
        words: What it is in a few words, such as "VM group".
        zone: The zone of the deployment.
        machines: What there is, a few words each, such as "2 VMs run: a2-highgpu-2g in us-east1-b,
            for up to 3 h 20 min".
        running: How many machines run.
        counts: The resources in the state: what they are called -> how many.
        data: What holds data and goes with it.
        jobs: The names of jobs that run or wait for their turn.
        hourly: What the last Create said that it costs at most, in USD per hour; None if not known.
    """

    name: str
    words: str
    zone: str
    machines: tuple[str, ...]
    running: int
    counts: dict[str, int]
    data: tuple[Held, ...]
    jobs: tuple[str, ...] = ()
    hourly: str | None = None
