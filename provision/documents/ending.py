"""What a Destroy ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from provision.documents.status import InAll


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
