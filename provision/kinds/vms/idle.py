"""VMs that have powered themselves off as they were idle (IDLE_TIMEOUT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import prices
from provision.cost import rates
from provision.documents import json_object
from provision.kinds.vms import instances, interruptions
from provision.screens import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.google.api import GoogleApi
    from provision.kinds.vms.interruptions import Member
    from provision.spec.cluster import VmSpec
    from provision.state.folder import StateFolder
    from provision.state.location import Place

_OFF: Final = "TERMINATED"
_SAID: Final = "vms/idle.json"
"""What a VM writes before it powers itself off (`aiinfra_vm.idle`)."""


def words_of(spec: VmSpec) -> str:
    """What idle VMs do, and what they cost then; "" where they run on."""
    if spec.idle_seconds is None:
        return ""
    rate = rates.disk(spec.group, prices.listed())
    each = rate.usd
    cost = f", {amounts.usd(each * spec.group.size.first)}/h" if each is not None else ""
    billed = "; a reservation is billed as before" if spec.group.reservation else ""
    return (
        f"after {words.duration(spec.idle_seconds)} without a job, a command, GPU work or a login"
        f" VMs power themselves off: then their disks are billed{cost}{billed}; Create starts them."
        " The group recreates no VM"
    )


def is_off(one: Member) -> bool:
    """Whether a VM of a group that repairs nothing is off, and stays so."""
    return one.status == _OFF and one.action == "NONE" and not one.restarts


def start(api: GoogleApi, place: Place, tell: Callable[[str], None]) -> None:
    """Start the VMs that are off."""
    off = [one.name for one in interruptions.down(instances.see(api, place).members) if is_off(one)]
    if off:
        tell(f"Starting {words.listed(off)} again")
        for name in off:
            api.start_instance(place.project_id, place.zone, name)


def since(folder: StateFolder) -> float | None:
    """When the last VM powered itself off, by what it said (Unix epoch); None if none did."""
    try:
        return json_object.number(json_object.read(folder.text(_SAID) or "{}").get("at"))
    except ValueError:  # any program on a VM may write there
        return None
