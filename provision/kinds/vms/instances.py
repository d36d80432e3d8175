"""The VMs of a cluster, as Google's API returns them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem
from provision.google.resources import GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.time.clock import Clock

_URL_KEY: Final = "proxy-url"
_SHORT: Final = 86400.0
"""Remaining run time below which a VM is worth a note, in seconds of cloud time."""


@dataclass(frozen=True, kw_only=True)
class Vm:
    """One VM."""

    name: str
    status: str  # its status in the API, such as RUNNING
    machine_type: str
    interfaces: int  # the number of its network interfaces
    # attached GPUs: type -> number; without GPUs that the machine type includes
    attached: Mapping[str, int]
    # seconds of cloud time until Google deletes it; None if it has no limit
    remaining: float | None
    notebook: str | None  # its notebook's URL; None if there is none yet
    # seconds of cloud time until the maintenance of its host, for which it is stopped; 0 when that
    # is under way, None if Google has not announced any
    maintenance: float | None = None
    created: str | None = None  # when it was made, in RFC 3339 format; None if Google does not say
    started: str | None = None  # when it was last started, likewise
    id: str = ""  # its number, which one that the group makes again by the same name does not have
    address: str = ""  # the internal address of its first interface; "" if it has none yet
    bound: bool = False  # whether it is bound to its reservation, and so to the hosts of that
    # whether Google starts it again when its host was maintained, or has failed
    restarts: bool = False

    @classmethod
    def of(cls, instance: Mapping[str, Any], clock: Clock) -> Self:
        """Make it from the API's document."""
        metadata = instance.get("metadata", {}).get("items", [])
        urls = [item.get("value") for item in metadata if item["key"] == _URL_KEY]
        interfaces = instance.get("networkInterfaces", [])
        scheduling = instance.get("scheduling", {})
        return cls(
            name=instance["name"],
            status=instance["status"],
            machine_type=instance["machineType"].rpartition("/")[2],
            interfaces=len(interfaces),
            attached={
                it["acceleratorType"].rpartition("/")[2]: int(it["acceleratorCount"])
                for it in instance.get("guestAccelerators", [])
            },
            remaining=_remaining(instance, clock),
            notebook=_https(urls[0]) if urls and urls[0] else None,
            maintenance=_maintenance(instance, clock),
            created=instance.get("creationTimestamp"),
            started=_started(instance),
            id=str(instance.get("id", "")),
            address=interfaces[0].get("networkIP", "") if interfaces else "",
            bound=scheduling.get("provisioningModel") == "RESERVATION_BOUND",
            restarts=scheduling.get("automaticRestart") is True,
        )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What Google says of a cluster's group, as it was asked once."""

    group: Mapping[str, Any] | None  # the group; None if there is none
    # what it says of its VMs, of those too that do not exist now
    members: Sequence[Mapping[str, Any]] = ()
    documents: Sequence[Mapping[str, Any]] = ()  # what Google says of each VM that exists

    def vms(self, clock: Clock) -> list[Vm]:
        """The VMs by their names."""
        return sorted((Vm.of(one, clock) for one in self.documents), key=lambda vm: vm.name)


def see(api: GoogleApi, place: Place) -> Seen:
    """Look at a cluster's group and its VMs, with two requests for every 500.

    The group says which VMs are its own: labels can be taken off.
    """
    name = names.GROUP.of(place.name_prefix)
    path = GROUP.path(project=place.project_id, zone=place.zone, name=name)
    group = api.find(GROUP.look.service, path)
    if group is None:
        return Seen(group=None)
    members = api.managed_instances(place.project_id, place.zone, name)
    own = {one["instance"].rpartition("/")[2] for one in members}
    if not own:
        return Seen(group=group)
    base = names.INSTANCE.of(place.name_prefix)
    found = api.named_instances(place.project_id, place.zone, base)
    return Seen(
        group=group, members=members, documents=[one for one in found if one["name"] in own]
    )


def documents(api: GoogleApi, place: Place) -> Sequence[Mapping[str, Any]]:
    """What Google says of each VM of a cluster's group; the arguments are those of `see`."""
    return see(api, place).documents


def find(api: GoogleApi, place: Place, clock: Clock) -> list[Vm]:
    """The VMs of a cluster by their names; the arguments are those of `see` and `Seen.vms`."""
    return see(api, place).vms(clock)


def ending_soon(vms: Sequence[Vm]) -> list[Problem]:
    """A note on VMs that have less than a day left; empty if there are no such VMs."""
    ending = {vm.name: vm.remaining for vm in vms if vm.remaining is not None}
    ending = {name: left for name, left in ending.items() if left < _SHORT}
    if not ending:
        return []
    return [
        Problem(
            code=Code.ENDS_SOON,
            setting="MAX_RUN_DURATION",
            what=f"in {words.duration(min(ending.values()))} Google deletes {words.listed(ending)}",
            why="their run duration ends then, and it can't be extended",
            fix="save their data; a Create after that requests new VMs",
        )
    ]


def _remaining(instance: Mapping[str, Any], clock: Clock) -> float | None:
    duration = instance.get("scheduling", {}).get("maxRunDuration", {}).get("seconds")
    start = _started(instance)
    if duration is None or not start:
        return None
    passed = clock.since(dt.datetime.fromisoformat(start).timestamp())
    return max(0.0, int(duration) - passed)


def _started(instance: Mapping[str, Any]) -> str | None:
    return instance.get("lastStartTimestamp") or instance.get("creationTimestamp")


def _maintenance(instance: Mapping[str, Any], clock: Clock) -> float | None:
    known = (instance.get("resourceStatus") or {}).get("upcomingMaintenance") or {}
    begins = known.get("windowStartTime")
    if not begins:
        return None
    moment = dt.datetime.fromisoformat(begins).timestamp()
    return 0.0 if known.get("maintenanceStatus") == "ONGOING" else clock.until(moment)


def _https(url: str) -> str:
    """The address as a URL; notebook proxies report it without a scheme."""
    return url if "://" in url else f"https://{url}"
