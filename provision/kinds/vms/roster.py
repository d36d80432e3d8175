"""What the VMs of a group agree on in the state folder: how many they are, and who has which rank.

The tool says how many VMs there are to be; the VMs do the rest among themselves (ADR 29). The names
of the objects are those of the programs that VMs get (terraform/modules/startup/payload).
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.documents import json_object
from provision.kinds.vms import boots, health

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provision.context import Cloud
    from provision.documents.vm_status import StartupStep
    from provision.spec.cluster import VmSpec
    from provision.spec.pools import Group
    from provision.state.folder import StateFolder
    from provision.time.clock import Clock

_MOST: Final = 4
_LONGEST: Final = 160
"""Faults of a VM, and characters of one, as VMs write them."""
_SIZE: Final = "vms/group.json"
_ROSTER: Final = "vms/roster.json"
_MEMBERS: Final = "vms/members/"
_AGENT: Final = "agent"
"""The step that sets up what each VM says of itself."""
_LATE: Final = 300.0
"""Seconds of cloud time without a heartbeat, which comes each minute, that are too long."""
_NUMBER: Final = re.compile(r"[0-9]{1,32}")
"""An account's, which goes into commands."""


def tell_size(cloud: Cloud, spec: VmSpec) -> None:
    """Say how many VMs the group is to have: their NNODES."""
    text = json.dumps({"instance_count": spec.group.size.first})
    # Where older versions are kept, each write of the same leaves one behind.
    if cloud.folder.text(_SIZE) != text:
        cloud.folder.write(_SIZE, text, "application/json")


def size(folder: StateFolder) -> int | None:
    """How many VMs the group is to have; None if no Create has said so."""
    try:
        return json_object.whole(json_object.read(folder.text(_SIZE) or "{}").get("instance_count"))
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True)
class Seat:
    """What is known of a VM that has agreed with the others on its rank."""

    rank: int | None  # its rank; None while the others hear nothing of it
    faults: tuple[str, ...] = ()  # what its GPUs complain of, in its own words
    # when the others last heard of it (Unix epoch); None if they do now, or don't say
    since: float | None = None


@dataclass(frozen=True)
class Heard:
    """What is heard of VMs."""

    seats: Mapping[str, Seat]  # those that have agreed on their ranks, by name
    # the last heartbeat of each (Unix epoch): of a group whose VMs are all silent, nobody writes
    # that they are
    beats: Mapping[str, float]

    def silence(
        self, name: str, steps: Mapping[str, StartupStep], started: str | None, clock: Clock
    ) -> str:
        """That a VM which runs is not heard of, as the end of a sentence about it; "" if it is.

        `steps`: the steps of its start-up. VMs of an earlier version have none of the agent.
        `started`: when it was last started, in RFC 3339 format; None if not known.
        """
        agent = steps[_AGENT].state if _AGENT in steps else ""
        beat, seat = self.beats.get(name), self.seats.get(name)
        last = beat
        if agent not in {"done", "failed"}:
            is_heard = True
        elif beat is not None:
            is_heard = clock.since(beat) < _LATE
        elif seat is not None:
            is_heard, last = seat.rank is not None, seat.since
        else:  # a step that failed has said why
            is_heard = agent == "failed" or clock.since(boots.moment(started) or 0.0) < _LATE
        if is_heard:
            return ""
        return f"has not been heard of{f' for {words.duration(clock.since(last))}' if last else ''}"


WHY_SILENT: Final = (
    "its agent writes into the state's bucket each minute: the VM hangs, its disk is full, or it"
    " has no way, or no right, to the bucket any more"
)


def another_start(vm: str, group: Group) -> str:
    """What to do about a VM that is not heard of; an account that was deleted takes the latter."""
    place = f"--zone {group.zone} --project {group.project}"
    recreate = health.another_host([vm], f"{group.name} {place}", bound=False)
    return (
        f"see `journalctl -u aiinfra-agent` on {vm}, or its serial port 1; when nobody needs what"
        f" runs there, restart it:\ngcloud compute instances reset {vm} {place}\nif that does not"
        f" help, {recreate}"
    )


def accounts(folder: StateFolder) -> Mapping[str, str]:
    """The number of each VM -> that of the account whose tokens it gets, as it said last."""
    said = (
        (json_object.text(it.get("instance_id")), json_object.text(it.get("account")))
        for it in _members(folder)
    )
    return {vm: account for vm, account in said if _NUMBER.fullmatch(account)}


def heard(cloud: Cloud) -> Heard:
    """What is heard of the VMs of a group.

    What can't be read counts as nothing agreed on: any program on the VMs may write it.
    """
    beats = {
        name.removeprefix(_MEMBERS).removesuffix(".json"): at
        for name, at in cloud.folder.changed(_MEMBERS).items()
    }
    return Heard(seats(cloud), beats)


def seats(cloud: Cloud) -> Mapping[str, Seat]:
    """The VMs by name, as far as they have agreed on their ranks; errors are those of `heard`."""
    return {
        str(it.get("name")): Seat(
            rank=rank if it.get("present") is True else None,
            faults=_few(json_object.texts(it.get("faults"))),
            since=boots.moment(json_object.text(it.get("since"))),
        )
        for it in _members(cloud.folder)
        if (rank := json_object.whole(it.get("rank"))) is not None
    }


def _members(folder: StateFolder) -> list[dict[str, Any]]:
    try:
        return json_object.objects(json_object.read(folder.text(_ROSTER) or "{}").get("members"))
    except ValueError:
        return []


def _few(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:_LONGEST] for text in itertools.islice(texts, _MOST))
