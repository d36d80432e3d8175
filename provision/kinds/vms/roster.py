"""What the VMs of a group agree on in the state folder: how many they are, and who has which rank.

The tool says how many VMs there are to be; the VMs do the rest among themselves (ADR 29). The names
of the objects are those of the programs that VMs get (terraform/modules/startup/payload).
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.documents import json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provision.context import Cloud
    from provision.spec.cluster import VmSpec
    from provision.state.folder import StateFolder

_MOST: Final = 4
_LONGEST: Final = 160
"""Faults of a VM, and characters of one, as VMs write them."""
_SIZE: Final = "vms/group.json"
_ROSTER: Final = "vms/roster.json"


def tell_size(cloud: Cloud, spec: VmSpec) -> None:
    """Say how many VMs the group is to have: their NNODES.

    Raises:
        StateError: The state folder can't be written.
    """
    text = json.dumps({"instance_count": spec.group.size.first})
    # Where older versions are kept, each write of the same leaves one behind.
    if cloud.folder.text(_SIZE) != text:
        cloud.folder.write(_SIZE, text, "application/json")


def size(folder: StateFolder) -> int | None:
    """How many VMs the group is to have; None if no Create has said so.

    Raises:
        StateError: The state folder can't be read.
    """
    try:
        return json_object.whole(json_object.read(folder.text(_SIZE) or "{}").get("instance_count"))
    except ValueError:
        return None


@dataclass(frozen=True)
class Seat:
    """What is known of a VM that has agreed with the others on its rank.

    Attributes:
        rank: Its rank.
        faults: What its GPUs complain of, in its own words.
    """

    rank: int
    faults: tuple[str, ...]


def _few(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:_LONGEST] for text in itertools.islice(texts, _MOST))


def seats(cloud: Cloud) -> Mapping[str, Seat]:
    """The VMs by name that are there, as far as they have agreed on their ranks.

    What can't be read counts as nothing agreed on: any program on the VMs may write it.

    Raises:
        StateError: The state folder can't be read.
    """
    text = cloud.folder.text(_ROSTER)
    try:
        members = json_object.objects(json_object.read(text or "{}").get("members"))
    except ValueError:
        return {}
    return {
        str(it.get("name")): Seat(rank, _few(json_object.texts(it.get("faults"))))
        for it in members
        if it.get("present") is True and (rank := json_object.whole(it.get("rank"))) is not None
    }
