"""What a VM answers to a task: a look at itself, its part in a measurement, or that it is sealed.

Nothing is measured. Bandwidths are those of `facts.bandwidths`, over the network that NCCL would
have found on the VM: that of its GPUs if the VM has all interfaces and its start-up has set up the
fabric, and plain sockets otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.cloud import vm_jobs
from rehearsal.cloud.compute import links, resources, startup_told
from rehearsal.cloud.compute.resources import INSTANCE, NETWORK
from rehearsal.cloud.facts import bandwidths, machines
from rehearsal.cloud.facts.machines import GpuNetwork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.compute.resources import Resource
    from rehearsal.cloud.store import Store

_VICTIMS = "scenarios/victims"
_ERRORS = 17
_USUAL_MTU = 1460
_PLUGINS = {GpuNetwork.RDMA: ("gib", "gIB"), GpuNetwork.TCPXO: ("tcpxo", "FasTrak")}
"""Network of the GPUs -> what start-up has to set up for it, and what NCCL calls that then.

TCPX needs a kernel that VMs don't have.
"""
_SOCKETS = "Socket"
_HALF = 0.5
_LOCAL_SSD_BYTES = 375 * 2**30
_NCCL = "2.28.7"
_NO_IMAGE = "/missing"
"""How the name of a container image ends that no registry has."""
_SEALING = 240.0
"""How long it takes to install docker and the like, and to clean a VM; a guess."""


@dataclass(frozen=True)
class Scene:
    """Those who are asked, and what is practised."""

    store: Store  # the cloud's memory
    scenarios: frozenset[str]
    folder: str  # the folder that the VMs share, which is that of their cluster
    vms: Mapping[str, Resource]  # those who hear of the task, by name
    now: float  # when they were asked

    def strikes(self, scenario: str, vm: str) -> bool:
        """Whether a scenario is about this VM: the first by name that was ever asked."""
        if scenario not in self.scenarios:
            return False
        key = f"{scenario} {self.folder}"
        struck = self.store.get(_VICTIMS, key)
        if struck is None:
            struck = {"vm": min(self.vms)}
            self.store.put(_VICTIMS, key, struck)
        return bool(struck["vm"] == vm)


@dataclass(frozen=True)
class Done:
    """What comes of a task on a VM."""

    seconds: float  # how long it takes, in cloud time
    answer: Resource | None = None  # what it answers; None if it fails
    failure: str = ""  # what it says then


def answer(scene: Scene, vm: Resource, kind: str, arguments: Resource) -> Done | None:
    """What a VM answers; None for a kind of task that it does not know."""
    if kind == "seal":
        return _sealed(scene, vm, arguments)
    if kind == "check":
        return Done(bandwidths.CHECK, _check(scene, vm))
    return _measured(scene, vm, arguments) if kind == "bandwidth" else None


def _sealed(scene: Scene, vm: Resource, arguments: Resource) -> Done:
    """A VM that is sealed is known by that when an image is made of its disk."""
    image = arguments["image"]
    if "-bake-" not in vm["name"]:
        return Done(1.0, failure="only the VM of a cluster that ends with -bake may be sealed")
    if image.partition(":")[0].endswith(_NO_IMAGE):
        return Done(30.0, failure=f"manifest unknown\nthe image {image} can't be pulled")
    name = links.name_of(vm["selfLink"])
    scene.store.put(INSTANCE.stored, name, {**vm, "_sealed": True})
    installed = resources.fingerprint([links.last(vm["machineType"]), image]).lower()
    return Done(
        _SEALING,
        {
            "installed": "".join(it for it in installed if it.isalnum()),
            "programs": ["docker"],
            "driver": startup_told.gpu_check(vm).get("driver", ""),
        },
    )


def complaints(scene: Scene, vm: str) -> list[str]:
    """What a VM's agent says of its GPUs without a task."""
    bad = scene.strikes("bad-gpu", vm)
    return [f"{_ERRORS} uncorrected memory (ECC) errors since its boot"] if bad else []


def _check(scene: Scene, vm: Resource) -> Resource:
    found = startup_told.gpu_check(vm)
    bad = scene.strikes("bad-gpu", vm["name"])
    gpus = [
        {
            "uuid": f"GPU-{vm['id']}-{number}",
            "name": name,
            "driver": found["driver"],
            "ecc_volatile": _ERRORS if bad and number == 0 else 0,
            "ecc_aggregate": _ERRORS if bad and number == 0 else 0,
            "repair_pending": bad and number == 0,
            "repair_failed": False,
        }
        for number, name in enumerate(found.get("names", []))
    ]
    machine = machines.find(links.last(vm["machineType"]))
    disks = machine.local_ssds if machine else 0
    users = _users(scene, vm)
    return {
        "error": "",
        "gpus": gpus,
        "users": users,
        "diagnostic": _not_run("its GPUs are in use")
        if users
        else _diagnostic(vm, bad=bad, has_gpus=bool(gpus)),
        "interfaces": [
            {"name": f"eth{number}", "mtu": _mtu(scene.store, it), "up": True}
            for number, it in enumerate(vm["networkInterfaces"])
        ],
        "local_ssd": _local_ssd(disks, mounted=startup_told.has_done(vm, "local-ssd", scene.now)),
        "fabric": {"kind": startup_told.fabric(vm), "faults": []},
    }


def _local_ssd(disks: int, *, mounted: bool) -> Resource:
    size = disks * _LOCAL_SSD_BYTES if mounted else None
    return {"disks": disks, "expected": disks, "mounted": mounted, "bytes": size, "free": size}


def _users(scene: Scene, vm: Resource) -> list[str]:
    """The program of a job that runs on a VM at the moment."""
    courses = (kept["course"] or {} for _, kept in scene.store.list(vm_jobs.COLLECTION))
    running = [it for it in courses if it.get("state") == "running"]
    is_here = any(node["instance_id"] == vm["id"] for it in running for node in it["nodes"])
    return ["python3 (2204)"] if is_here else []


def _not_run(why: str) -> Resource:
    return {"ran": False, "error": why, "failures": []}


def _diagnostic(vm: Resource, *, bad: bool, has_gpus: bool) -> Resource:
    """DCGM comes with the Ops Agent."""
    if not has_gpus or startup_told.leaves_out(vm, "ops-agent"):
        return _not_run("there is no dcgmi")
    failures = ["memory of GPU 0: a row is to be remapped"] if bad else []
    return {"ran": True, "error": "", "failures": failures}


def _mtu(store: Store, interface: Resource) -> int:
    network = store.get(NETWORK.stored, links.name_of(interface["network"]))
    return int((network or {}).get("mtu") or _USUAL_MTU)


def _measured(scene: Scene, vm: Resource, arguments: Resource) -> Done:
    own = vm["name"]
    group = next(
        names
        for names in ([it["name"] for it in group] for group in arguments["groups"])
        if own in names
    )
    if users := _users(scene, vm):
        return Done(1.0, {"measured": False, "users": users, "why": "its GPUs are in use"})
    if missing := [name for name in group if name not in scene.vms]:
        return Done(120.0, failure=f"processes of {', '.join(missing)} did not come within 120 s")
    networks = [_network(scene.vms[name]) for name in group]
    reply: Resource = {"measured": True, "networks": [_network(vm)], "library": "libnccl.so.2"}
    if group[0] == own:
        machine = links.last(vm["machineType"])
        peak = bandwidths.between(machine, on_gpu_network=_SOCKETS not in networks)
        if any(scene.strikes("slow-vm", name) for name in group):
            peak *= _HALF
        ranks = len(group) * arguments["gpus"]
        rows = [_row(size, peak, ranks, arguments["collective"]) for size in arguments["sizes"]]
        reply |= {"nccl": _NCCL, "rows": rows}
    return Done(bandwidths.MEASUREMENT, reply)


def _network(vm: Resource) -> str:
    machine = machines.find(links.last(vm["machineType"]))
    if machine is None or machine.gpu_network is None:
        return _SOCKETS
    has_all = len(vm["networkInterfaces"]) == machine.most_nics
    needed, name = _PLUGINS.get(machine.gpu_network, ("", _SOCKETS))
    return name if has_all and startup_told.fabric(vm) == needed else _SOCKETS


def _row(size: int, peak: float, ranks: int, collective: str) -> Resource:
    """The seconds of one round; what is sent twice takes twice as long."""
    times = 2 if collective == "all_reduce" else 1
    seconds = bandwidths.LATENCY + size * times * (ranks - 1) / ranks / (peak * 1e9)
    return {"size": size, "out_of_place": seconds, "in_place": seconds, "wrong": 0}
