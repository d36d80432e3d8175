"""The VMs of a cluster as Google's API returns them, what Google has done to them, how they are.

What a VM found about itself is judged by what its machine type promises.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.catalogue import machines, names
from provision.codes import Code
from provision.documents import json_object
from provision.documents.checks import VmCheck
from provision.errors import Problem
from provision.google import refusals, resources
from provision.google.lists import Lists
from provision.google.resources import GROUP
from provision.kinds import diagnosis
from provision.kinds import happened as happenings
from provision.kinds.happened import Event, Told
from provision.kinds.status import alike, seconds_of
from provision.spec.capacity import Mode
from provision.spec.pools import Group, Pool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.documents.vm_status import GpuCheck
    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.state.record import Record
    from provision.time.clock import Clock

_URL_KEY: Final = "proxy-url"
_FIELDS: Final = (
    "id,name,selfLink,status,machineType,creationTimestamp,lastStartTimestamp,scheduling"
    ",guestAccelerators,resourcePolicies,resourceStatus/upcomingMaintenance,serviceAccounts/email"
    ",networkInterfaces(networkIP,accessConfigs/natIP),metadata/items/key"
)
"""What is read of each VM. Of its metadata, which have the programs that it gets, only the keys."""
UNBILLED: Final = frozenset({"STOPPED", "SUSPENDED", "TERMINATED"})
"""States in which a VM itself is not billed; its disk is, which is not counted here."""
_SHORT: Final = 86400.0
"""Remaining run time below which a VM is worth a note, in seconds of cloud time."""
_RESTART: Final = 1800.0
"""Seconds of cloud time in which Google should have started a VM again."""


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
    # seconds from a start until Google deletes it, of which `remaining` are left
    lives: float = 0.0

    @classmethod
    def of(cls, instance: Mapping[str, Any], clock: Clock) -> Self:
        """Make it from the API's document."""
        interfaces = instance.get("networkInterfaces", [])
        scheduling = instance.get("scheduling", {})
        # The notebook's proxy reports its URL without a scheme.
        items = instance.get("metadata", {}).get("items", [])
        url = next((it.get("value") for it in items if it["key"] == _URL_KEY), None)
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
            notebook=(url if "://" in url else f"https://{url}") if url else None,
            maintenance=_maintenance(instance, clock),
            created=instance.get("creationTimestamp"),
            started=_started(instance),
            id=str(instance.get("id", "")),
            address=interfaces[0].get("networkIP", "") if interfaces else "",
            bound=scheduling.get("provisioningModel") == "RESERVATION_BOUND",
            restarts=scheduling.get("automaticRestart") is True,
            lives=_lives(instance) or 0.0,
        )


_MODES: Final = {
    "FLEX_START": Mode.FLEX_START,
    "RESERVATION_BOUND": Mode.RESERVATION_BOUND,
    "SPOT": Mode.SPOT,
    "STANDARD": Mode.STANDARD,
}
"""The provisioning models of Compute Engine: compute v1, Scheduling (discovery of 2026-11-06)."""


def mode_of(document: Mapping[str, Any], usual: Mode) -> Mode:
    """How a VM was got, and is billed: its template may be older than the settings.

    `usual`: how the settings say that VMs are got. One of a reservation that it is not bound to
    looks like one on demand.
    """
    own = _MODES.get(document.get("scheduling", {}).get("provisioningModel", ""), usual)
    return usual if own is Mode.STANDARD and usual is Mode.RESERVATION else own


def otherwise(documents: Iterable[Mapping[str, Any]], asked: Pool) -> list[tuple[Pool, int]]:
    """The VMs that are of another type than is asked for now, or were got in another way."""
    found: Counter[Pool] = Counter()
    for document in documents:
        machine_type = resources.last(document["machineType"])
        mode = mode_of(document, asked.mode)
        is_other = (machine_type, mode) != (asked.machine_type, asked.mode)
        if document["status"] in UNBILLED or not is_other:
            continue
        gpus: dict[str, Any] = {}
        if machine_type != asked.machine_type:
            own = next(iter(document.get("guestAccelerators", [])), None)
            gpus["gpu_type"] = resources.last(own["acceleratorType"]) if own else None
            gpus["gpu_count"] = int(own["acceleratorCount"]) if own else None
        seconds = document.get("scheduling", {}).get("maxRunDuration", {}).get("seconds")
        ends = None if seconds is None else int(seconds)
        changed = {"machine_type": machine_type, "mode": mode, "max_run_seconds": ends, **gpus}
        found[replace(asked, **changed)] += 1
    return list(found.items())


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What Google says of a cluster's group, as it was asked once."""

    group: Mapping[str, Any] | None = None  # the group; None if there is none, or none was asked
    # what it says of its VMs, of those too that do not exist now
    members: Sequence[Mapping[str, Any]] = ()
    # what Google says of each VM that exists, but for its metadata other than a notebook's URL
    documents: Sequence[Mapping[str, Any]] = ()

    def vms(self, clock: Clock) -> list[Vm]:
        """The VMs by their names."""
        return sorted((Vm.of(one, clock) for one in self.documents), key=lambda vm: vm.name)


def see(api: GoogleApi, place: Place, lists: Lists | None = None) -> Seen:
    """Look at a cluster's group and its VMs, with two requests for every 500, and for URLs.

    The group says which VMs are its own: labels can be taken off. `lists`: what was listed so far.
    """
    group = (lists or Lists(api)).find(GROUP.look, place.project_id, group_path(place))
    return Seen(group=None) if group is None else replace(see_vms(api, place, lists), group=group)


def see_vms(api: GoogleApi, place: Place, lists: Lists | None = None) -> Seen:
    """Look at the VMs alone of a cluster whose group there is."""
    name = names.GROUP.of(place.name_prefix)
    members = api.managed_instances(place.project_id, place.zone, name)
    own = {one["instance"].rpartition("/")[2] for one in members}
    if not own:
        return Seen()
    base = names.INSTANCE.of(place.name_prefix)
    found = (lists or Lists(api)).instances(place.project_id, place.zone, base, _FIELDS)
    documents = [one for one in found if one["name"] in own]
    _add_urls(api, place, documents)
    return Seen(members=members, documents=documents)


def _add_urls(api: GoogleApi, place: Place, documents: Iterable[dict[str, Any]]) -> None:
    """Add to the metadata of those VMs that have a notebook's URL what it is."""
    of_name = {
        one["name"]: one
        for one in documents
        if any(it.get("key") == _URL_KEY for it in one.get("metadata", {}).get("items", []))
    }
    for whole in api.whole_instances(place.project_id, place.zone, sorted(of_name)):
        items = [it for it in whole["metadata"]["items"] if it["key"] == _URL_KEY]
        of_name[whole["name"]]["metadata"] = {"items": items}


def group_of(record: Record, found: Sequence[Vm] = ()) -> Group:
    """The group with the machines that were asked for; those that run where the record is lost."""
    asked = record.settings
    gpu, count = asked.get("ACCELERATOR_TYPE"), json_object.whole(asked.get("GPU_COUNT"))
    machine_type = str(asked.get("VM_TYPE") or (found[0].machine_type if found else ""))
    attached = machines.takes_gpus(machine_type)
    return Group(
        project=record.project_id,
        zone=record.zone,
        name=names.GROUP.of(record.name_prefix),
        size=json_object.whole(asked.get("INSTANCE_COUNT")) or len(found),
        machine_type=machine_type,
        gpu=str(gpu) if gpu and attached else None,
        gpus=count if count and attached else 0,
    )


def group_path(place: Place) -> str:
    """The path of a cluster's group."""
    name = names.GROUP.of(place.name_prefix)
    return GROUP.path(project=place.project_id, zone=place.zone, name=name)


def ending_soon(vms: Sequence[Vm]) -> list[Problem]:
    """A note on VMs that have less than a day left, and less than half of what they had.

    Of those that have just come the plan has said it.
    """
    left = {vm.name: (vm.remaining, vm.lives / 2) for vm in vms if vm.remaining is not None}
    ending = {name: has for name, (has, half) in left.items() if has < min(_SHORT, half)}
    if not ending:
        return []
    one = "save what is on its disk; a Create after that requests a new VM"
    several = "save what is on their disks; a Create after that requests new VMs"
    note = Problem(
        code=Code.ENDS_SOON,
        setting="MAX_RUN_DURATION",
        what=f"in {words.duration(min(ending.values()))} Google deletes {words.listed(ending)}",
        why="MAX_RUN_DURATION is over then, and can't be extended for what runs",
        fix=one if len(ending) == 1 else several,
    )
    return [note]


def _remaining(instance: Mapping[str, Any], clock: Clock) -> float | None:
    duration, start = _lives(instance), _started(instance)
    if duration is None or not start:
        return None
    passed = clock.since(dt.datetime.fromisoformat(start).timestamp())
    return max(0.0, duration - passed)


def _lives(instance: Mapping[str, Any]) -> int | None:
    seconds = instance.get("scheduling", {}).get("maxRunDuration", {}).get("seconds")
    return None if seconds is None else int(seconds)


def _started(instance: Mapping[str, Any]) -> str | None:
    return instance.get("lastStartTimestamp") or instance.get("creationTimestamp")


def _maintenance(instance: Mapping[str, Any], clock: Clock) -> float | None:
    known = (instance.get("resourceStatus") or {}).get("upcomingMaintenance") or {}
    begins = known.get("windowStartTime")
    if not begins:
        return None
    moment = dt.datetime.fromisoformat(begins).timestamp()
    return 0.0 if known.get("maintenanceStatus") == "ONGOING" else clock.until(moment)


def arguments(group: Group) -> str:
    """A group in gcloud's arguments."""
    return f"{group.name} --zone {group.zone} --project {group.project}"


# ------------------------------------------------------------------ interruptions


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The last of the events that a VM has met."""

    event: Event
    ago: float  # how long ago, in seconds of cloud time

    @property
    def words(self) -> str:
        """The event, as the end of a sentence about the VM."""
        return f"{self.event.words} {words.duration(self.ago)} ago"


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a group says of one of its VMs that does not run."""

    name: str  # the VM's name
    status: str  # its status in the API; "" if the VM does not exist now
    action: str  # what the group is doing with it, such as RECREATING
    reasons: tuple[str, ...]  # Google's words about why that does not succeed
    restarts: bool = False  # whether Google starts it again, as it was the host

    @property
    def is_left(self) -> bool:
        """Whether neither its group nor Google does anything about it."""
        return self.action in {"", "NONE"} and not self.restarts

    @property
    def is_made(self) -> bool:
        """Whether its group makes it for the first time."""
        return self.action in {"CREATING", "CREATING_WITHOUT_RETRIES"}

    @property
    def is_off(self) -> bool:
        """Whether it is off, and stays so."""
        return self.status == "TERMINATED" and self.action == "NONE" and not self.restarts

    @property
    def words(self) -> str:
        """What has become of it, as the end of a sentence about it."""
        there = f"is {self.status}" if self.status else "does not exist"
        match self.action:
            case "NONE" | "" if self.restarts:
                return f"{there}: Google starts it again, usually within minutes"
            case "NONE" | "":
                return f"{there}, and its group does nothing about it"
            case "CREATING" | "RECREATING":
                return f"{there}: its group makes it as soon as there is room"
            case "CREATING_WITHOUT_RETRIES":
                return f"{there}: its group tries once to make it"
            case action:
                return f"{there}: its group is {action.lower()} it"

    def story(self, known: Mapping[str, Interruption]) -> str:
        """The same behind what Google has done to it; `known`: that of all VMs, by their names."""
        met = known.get(self.name)
        return f"{met.event.words}; it {self.words}" if met else self.words


def down(managed: Iterable[Mapping[str, Any]], restarting: Collection[str] = ()) -> list[Member]:
    """The VMs of a group that do not run, by name."""
    found = {
        one["instance"].rpartition("/")[2]: one
        for one in managed
        if one.get("instanceStatus") != "RUNNING"
    }
    return [
        Member(
            name=name,
            status=one.get("instanceStatus", ""),
            action=one.get("currentAction", ""),
            reasons=tuple(dict.fromkeys(map(refusals.words, refusals.of_instances([one])))),
            restarts=name in restarting,
        )
        for name, one in sorted(found.items())
    ]


def restarting(vms: Iterable[Vm], known: Mapping[str, Interruption], clock: Clock) -> set[str]:
    """The VMs that Google stopped for their host a short while ago, and starts again."""

    def is_due(vm: Vm) -> bool:
        met = known.get(vm.name)
        if met is None or met.event is Event.PREEMPTED or met.ago > _RESTART:
            return False
        started = seconds_of(vm.started)
        return vm.restarts and (started is None or clock.since(started) > met.ago)

    return {vm.name for vm in vms if is_due(vm)}


def interruptions(told: Iterable[Told], clock: Clock) -> dict[str, Interruption]:
    """The last interruption of each VM that has met one, of what happened, the oldest first."""
    return {
        it.name: Interruption(event=it.event, ago=clock.since(it.moment))
        for it in told
        if it.event is not Event.REMADE
    }


def happened(operations: Iterable[Mapping[str, Any]], place: Place) -> list[Told]:
    """What Google has done to the VMs of a group, the oldest first."""
    start = f"{names.INSTANCE.of(place.name_prefix)}-"
    return happenings.look(operations, lambda name: name.startswith(start))


def gone(
    members: Sequence[Member], known: Mapping[str, Interruption], group: Group | None = None
) -> list[Problem]:
    """What has become of VMs that run no longer; `group`: theirs if it makes none again."""
    return [
        Problem(
            code=Code.MACHINES_GONE,
            what=f"{words.listed([one.name for one in them])} {what}",
            why="\n".join(dict.fromkeys(reason for one in them for reason in one.reasons))
            if group is None
            else "Google makes no VM of flex start again: a new one comes by a new request",
            fix="keep checkpoints in a bucket: such a VM starts again, with an empty boot disk"
            " if its group made it again"
            if group is None
            else "take what is left out of the group with: gcloud compute instance-groups managed"
            f" delete-instances {arguments(group)}"
            f" --instances={','.join(one.name for one in members)}; then run Create for a new"
            " request",
        )
        for what, them in alike(members, lambda one: one.story(known)).items()
    ]


# ------------------------------------------------------------------ as they should be

_MOST: Final = 3
"""Failures of DCGM's that are named."""


def judge(vm: Vm, found: Mapping[str, Any]) -> VmCheck:
    """What a VM found, and what of that is wrong."""
    # The errors of each GPU as a number that can be added.
    gpus = [
        it | {"ecc_volatile": json_object.whole(it.get("ecc_volatile"))}
        for it in json_object.objects(found.get("gpus"))
    ]
    diagnostic = json_object.inner(found.get("diagnostic"))
    failures = json_object.items(diagnostic.get("failures"))
    ran = "failed" if failures else "passed"
    return VmCheck(
        gpus=len(gpus),
        names=tuple(str(gpu.get("name")) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus if gpu.get("driver")), None),
        ecc_errors=diagnosis.memory_errors(gpus),
        diagnostic=ran if diagnostic.get("ran") else "not run",
        interfaces=len(json_object.objects(found.get("interfaces"))),
        local_ssds=json_object.whole(json_object.inner(found.get("local_ssd")).get("disks")),
        users=tuple(json_object.texts(found.get("users"))),
        login=tuple(json_object.texts(found.get("login"))),
        faults=tuple(_faults(vm, found, gpus, failures)),
    )


def reported(vm: Vm, found: GpuCheck | None, state: str = "") -> VmCheck:
    """What a VM reported at its start-up, judged likewise; `state`: why it can't be asked."""
    more = (state,) if state else ()
    if found is None:
        return VmCheck(faults=more)
    count, kind = due(vm)
    faults = []
    if count is not None and found.gpus != count:
        faults.append(f"{found.gpus} GPUs instead of {count}")
    faults += diagnosis.strange(found.names, kind)
    if found.ecc_errors:
        faults.append(f"{found.ecc_errors} uncorrected memory (ECC) errors")
    if found.interfaces != vm.interfaces:
        faults.append(f"{found.interfaces} network interfaces instead of {vm.interfaces}")
    return VmCheck(
        gpus=found.gpus,
        names=found.names,
        driver=found.driver,
        ecc_errors=found.ecc_errors,
        interfaces=found.interfaces,
        faults=(*faults, *more),
    )


def due(vm: Vm) -> tuple[int | None, machines.Gpu | None]:
    """The number and the type of the GPUs that a VM should have; None if not known."""
    if vm.attached:
        kind, count = next(iter(vm.attached.items()))
        return count, machines.GPUS.get(kind)
    machine = machines.lookup(vm.machine_type)
    if machine is None:
        return None, None
    return machine.gpus or 0, machine.family.gpu


class Fault(enum.StrEnum):
    """What a host is reported for: values of `faultReasons` (compute v1)."""

    XID = "UNRECOVERABLE_GPU_ERROR"
    GPU = "CHIP_ERROR"
    SLOW = "PERFORMANCE"


def another_host(names: Sequence[str], where: str, *, bound: bool, fault: Fault = Fault.XID) -> str:
    """How VMs get another host.

    A bound VM that is recreated may come back to the same host; Google takes such a VM to another
    one if its host is reported ("Report faulty host", AI Hypercomputer, 2026). `where`: their group
    in gcloud's arguments: "NAME --zone Z --project P".
    """
    if not bound:
        return (
            "let Google recreate it with: gcloud compute instance-groups managed recreate-instances"
            f" {where} --instances={','.join(names)}"
        )
    return (
        "report its host, which stops the VM and takes it to another host where it can: gcloud"
        f" compute instances report-host-as-faulty {' or '.join(names)} {where.partition(' ')[2]}"
        f" --disruption-schedule=IMMEDIATE --fault-reasons=behavior={fault}"
    )


def _faults(
    vm: Vm, found: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], failures: Sequence[Any]
) -> Iterator[str]:
    count, kind = due(vm)
    if count != 0:
        yield from diagnosis.faults_of_gpus(gpus, json_object.text(found.get("error")), count, kind)
    if failures:
        named = "; ".join(map(str, failures[:_MOST]))
        more = f"; and {len(failures) - _MOST} more" if len(failures) > _MOST else ""
        yield f"DCGM's diagnostic failed: {named}{more}"
    fabric = json_object.inner(found.get("fabric"))
    wrong = json_object.items(fabric.get("faults"))
    yield from (f"the fabric {fabric.get('kind')}: {it}" for it in wrong)
    machine = machines.lookup(vm.machine_type)
    yield from _of_interfaces(vm, json_object.objects(found.get("interfaces")), machine)
    if machine is None or vm.attached:
        return
    ssds, wanted = json_object.inner(found.get("local_ssd")), machine.local_ssds
    if ssds.get("disks") != wanted:
        yield f"{ssds.get('disks')} local SSDs instead of {wanted}"
    if ssds.get("disks") and not ssds.get("mounted"):
        yield "its local SSDs are not mounted at /mnt/localssd"


def _of_interfaces(
    vm: Vm, found: Sequence[Mapping[str, Any]], machine: machines.MachineType | None
) -> Iterator[str]:
    if len(found) != vm.interfaces:
        yield f"{len(found)} network interfaces instead of {vm.interfaces}"
    if down := [str(it.get("name")) for it in found if not it.get("up")]:
        yield f"no link on {words.listed(down)}"
    if machine is None or machine.gpu_network is None or vm.interfaces != machine.nics:
        return
    network = machine.gpu_network
    wide = sum((json_object.whole(it.get("mtu")) or 0) >= network.mtu for it in found)
    wanted = network.vpcs * network.subnets
    if wide < wanted and len(found) == vm.interfaces:
        yield f"{wide} interfaces have the MTU {network.mtu} instead of the {wanted} of its GPUs"
