"""How a job goes on the VMs that it has; which one has which when: `vm_queue`.

What a VM answers to a task: a look at itself, its part in a measurement, or that it is sealed.

Nothing is measured. Bandwidths are those of `facts.bandwidths`, over the network that NCCL would
have found on the VM: that of its GPUs if the VM has all interfaces and its start-up has set up the
fabric, and plain sockets otherwise.
"""

import json
import math
import re
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rehearsal.cloud import real_programs, secrets, vm_documents, vm_programs
from rehearsal.cloud.compute import links, resources, startup_told
from rehearsal.cloud.compute.resources import INSTANCE, NETWORK, Resource
from rehearsal.cloud.facts import bandwidths, machines
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.cloud.scenarios import VICTIMS
from rehearsal.cloud.storage import buckets, objects
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request

COLLECTION = "vms/jobs"
OVER = frozenset({"succeeded", "failed", "cancelled"})
_TOLD_TO_END = 143
_LONG = 600.0  # seconds that a program has run whose failure is taken for none that comes back
_NOT_FOUND = 127
_NEVER_RUNS = (126, _NOT_FOUND)
_CANCELLED = "it was cancelled"
_TIME_IS_OVER = "--time is over"
_MEETING, _LOADING = 60.0, 300.0
"""Seconds after which VMs wonder that a job has no connection between them, and no use of a GPU."""
_BY_SOCKETS = re.compile(r"NCCL INFO Using network (Socket|IB)\b")


class Run:
    """A job on VMs, or one of its tasks; `kept` has bucket, folder, and of a task its "index"."""

    def __init__(self, request: Request, store: Store, kept: Resource) -> None:
        self._request = request
        self._store = store
        self._kept = kept
        self._bucket = kept["bucket"]
        self._folder = kept["folder"]
        self._index: int | None = kept.get("index")

    def new(self, name: str, why: str) -> Resource:
        """The course of a job of which nothing has begun."""
        began = {"attempt": 0, "failures": 0, "nodes": [], "began": None, "ends": None}
        told: Resource = {"failure": None, "events": [], "since": self._request.now}
        return {"name": name, "state": "waiting", "why": why, **began, **told}

    def followed(
        self, course: Resource, living: list[tuple[int, Resource]], *, cancelled: bool
    ) -> Resource:
        """Its course by now; `living`: of one that runs all VMs, else those that it can have."""
        if course["state"] == "running":
            follow = self._really if self._kept["real"] else self._running
            return follow(course, living, cancelled=cancelled)
        if cancelled:
            return self._over(course, "cancelled", _CANCELLED)
        if (course["failure"] or {}).get("ran") is not None:
            pause = min(300.0, 10.0 * 2 ** min(course["failures"] - 1, 5))
            if self._request.now < course["since"] + pause * self._request.rate:
                return course | {"why": f"it begins again {pause:.0f} s after its last failure"}
        spec = self.read(f"jobs/{course['name']}.json")
        group = self.read("vms/roster.json")["nnodes"]
        # Through Ray a program runs on the head alone, here the first, and its tasks anywhere.
        on_ray = bool(living) and startup_told.has_ray(living[0][1])
        wanted = 1 if on_ray else spec["nodes"] or group
        if len(living) < wanted:
            return course | {"why": f"{len(living)} of {wanted} VMs are there"}
        nodes = [
            {
                "rank": rank,
                "name": vm["name"],
                "instance_id": vm["id"],
                "address": vm["networkInterfaces"][0]["networkIP"],
            }
            for rank, (_, vm) in enumerate(living[:wanted])
        ]
        begins = self._request.after(bandwidths.HEARING)
        began = course["began"] or begins
        ends = None if not spec["seconds"] else began + spec["seconds"] * self._request.rate
        number = course["attempt"] + 1
        started = {"state": "running", "why": "", "attempt": number, "nodes": nodes}
        self._kept["begins"], self._kept["written"] = begins, [0] * wanted
        denied = secrets.denied(self._store, spec.get("secrets") or {}, living[0][1])
        denied = denied or self._shut(spec.get("mounts") or [], living[0][1])
        if denied:
            return self._failed(course | started, spec, 0, None, denied, [], final=True)
        self._begin(spec, number, [it["name"] for it in nodes], on_ray=on_ray)
        return course | started | {"began": began, "ends": ends, "since": begins, "failure": None}

    def _shut(self, mounts: list[Resource], vm: Resource) -> str:
        """What a VM says of the first bucket of a job that it can't mount; "" for none."""
        if mounts and startup_told.leaves_out(vm, "mounts"):
            return (
                "this VM has no gcsfuse, with which --mount works: GCS_MOUNT_LIST with any bucket"
                " and Create --replace-vms bring it, or an image that has it"
            )
        members = [f"serviceAccount:{it['email']}" for it in vm.get("serviceAccounts") or []]
        for it in mounts:
            may = buckets.may_read if it["read_only"] else buckets.may_write
            if not any(may(self._store, it["bucket"], member, "any") for member in members):
                role = "objectViewer" if it["read_only"] else "objectUser"
                return (
                    f"gs://{it['bucket']} can't be mounted: googleapi: Error 403; if its owner has"
                    " not granted it: gcloud storage buckets add-iam-policy-binding"
                    f" gs://{it['bucket']} --member {', '.join(members)} --role"
                    f" roles/storage.{role}"
                )
        return ""

    def _begin(self, spec: Resource, attempt: int, vms: list[str], *, on_ray: bool) -> None:
        """Begin the programs of an attempt, if they are really run."""
        place = self._request.place
        is_wanted = real_programs.SCENARIO in self._request.scenarios and place is not None
        why_not = real_programs.refusal(len(vms), spec["image"], on_ray=on_ray)
        self._kept["real"] = ""
        self._kept["untried"] = why_not if is_wanted else "" if why_not else real_programs.HINT
        if why_not or not is_wanted or place is None:
            return
        name, archive = spec["name"], self._archive(spec)
        env, folder = (
            spec["env"],
            place / real_programs.PLACE / self._folder.rpartition("/")[2] / name,
        )
        if attempt == 1 and self._index in {None, (spec.get("array") or {}).get("first")}:
            shutil.rmtree(folder, ignore_errors=True)
        if self._index is not None:  # tasks share the folder of their VM
            env, folder = env | {"JOB_INDEX": str(self._index)}, folder / vms[0]
        wanted = real_programs.Wanted(name, attempt, spec["command"], len(vms), env, archive)
        try:
            self._kept["real"] = real_programs.begin(wanted, folder)
        except (OSError, tarfile.TarError) as error:
            self._kept["untried"] = f"it can't be begun on this machine: {error}"

    def _really(
        self, course: Resource, living: list[tuple[int, Resource]], *, cancelled: bool
    ) -> Resource:
        """What comes of programs that are really run."""
        spec = self.read(f"jobs/{course['name']}.json")
        ran = real_programs.find(self._kept["real"])
        if ran is None:
            return self._failed(course, spec, 0, None, real_programs.GONE, [])
        is_late = course["ends"] is not None and self._request.now >= course["ends"]
        lost = self._lost(course, living)
        if cancelled:
            ran.stop(_CANCELLED)
        elif lost:
            ran.stop(f"the VM {course['nodes'][lost[0]]['name']} was lost, or does not answer")
        elif is_late and self._request.rate:
            ran.stop(_TIME_IS_OVER)
        is_over, said = ran.is_over, ran.said
        self._kept["ran"] = ran.seconds
        for rank, text in enumerate(said):
            self._write_log(course, rank, text)
        if not is_over:
            return course
        if ran.why == _CANCELLED:
            return self._over(course, "cancelled", ran.why)
        if ran.failed is None and not ran.why:
            # As long as it ran, not until somebody looked.
            ended = self._kept["begins"] + ran.seconds * (self._request.rate or 1.0)
            return self._over(course, "succeeded", "") | {"since": ended}
        rank = next(iter(lost), 0) if ran.failed is None else ran.failed
        code = None if lost and ran.failed is None else ran.code(rank) or None
        cause = "command not found on this machine" if code == _NOT_FOUND else ""
        tail = said[rank].decode(errors="replace").splitlines()
        if ran.failed is None:
            final = ran.why in {_TIME_IS_OVER, real_programs.TOO_LONG}
            return self._failed(course, spec, rank, code, ran.why, tail, final=final)
        return self._failed(course, spec, rank, code, cause, tail, ran=ran.seconds)

    def _running(
        self, course: Resource, living: list[tuple[int, Resource]], *, cancelled: bool
    ) -> Resource:
        spec = self.read(f"jobs/{course['name']}.json")
        files = vm_programs.files_of(self._archive(spec))
        command = vm_programs.of_task(spec["command"], self._index)
        done = vm_programs.course(command, files, spec["name"], "", self._kept["untried"])
        now, rate = self._request.now, self._request.rate
        so_far = (now - self._kept["begins"]) / (rate or 1.0)
        self._kept["ran"] = max(0.0, min(done.seconds, so_far)) if rate else done.seconds
        ended = self._kept["begins"] + done.seconds * rate
        lost = self._lost(course, living, ended)
        said = [line for at, line in done.said if self._kept["begins"] + at * rate <= now]
        if cancelled and now < ended:
            self._say(course, [*said, f"=== aiinfra: SIGTERM: {_CANCELLED} ==="])
            return self._over(course, "cancelled", _CANCELLED)
        # Where everything is done at once, its end and that of its time are one moment.
        is_late = course["ends"] is not None and min(now, ended) >= course["ends"]
        if is_late and (rate or done.seconds >= spec["seconds"]):
            self._say(course, [*said, f"=== aiinfra: SIGTERM: {_TIME_IS_OVER} ==="])
            return self._failed(course, spec, 0, _TOLD_TO_END, _TIME_IS_OVER, said, final=True)
        self._say(course, [] if lost and now >= ended else said)
        if lost:
            cause = f"the VM {course['nodes'][lost[0]]['name']} was lost, or does not answer"
            return self._failed(course, spec, lost[0], None, cause, [])
        if now >= ended:
            if done.code == 0:
                return self._over(course, "succeeded", done.why)
            cause = "command not found" if done.code == _NOT_FOUND else ""
            return self._failed(course, spec, 0, done.code, cause, said, ran=done.seconds)
        is_watched = spec["env"].get("AIINFRA_GUARD") != "no" and self._index is None
        return self._doubted(course, done, said, living[0][1]) if is_watched else course

    def _doubted(
        self, course: Resource, done: vm_programs.Course, said: list[str], vm: Resource
    ) -> Resource:
        """What VMs wonder at in a job, as far as it is known here what its programs do."""
        if startup_told.has_ray(vm):
            return course
        number, found = len(course["nodes"]), {}
        seconds = (self._request.now - self._kept["begins"]) / (self._request.rate or 1.0)
        # A program that is known whole does nothing but wait and write.
        if not done.why and number > 1 and seconds >= _MEETING:
            alone = f"its processes on {number} machines have not connected to each other"
            found[alone] = f"after 60 s {alone}: does each train alone? Which variables a launcher"
            found[alone] += " reads: docs/how-to/launchers.md"
        if not done.why and startup_told.gpu_check(vm).get("gpus") and seconds >= _LOADING:
            found["no process on its machines uses a GPU"] = (
                "after 300 s it has machines on which no process uses a GPU (Jobs names them): does"
                " it still load, or does its framework see none?"
                " docs/how-to/look-after-a-cluster.md"
            )
        has_plugin = startup_told.fabric(vm) in {name for name, _ in _PLUGINS.values()}
        if number > 1 and has_plugin and any(map(_BY_SOCKETS.search, said)):
            slow = "NCCL goes by sockets, not by the network of the GPUs"
            found[slow] = f"{slow}, at a fraction of the bandwidth: the program has replaced"
            found[slow] += " NCCL's variables, or LD_LIBRARY_PATH: docs/how-to/gpu-network.md"
        events = course["events"]
        events = [*events, *(it for it in found.values() if it not in events)]
        return course | {"why": "; ".join(found), "events": events}

    def _lost(
        self, course: Resource, living: list[tuple[int, Resource]], ended: float = math.inf
    ) -> list[int]:
        """The ranks whose VMs went before a moment, although nobody has asked since."""
        there = {vm["id"] for _, vm in living}
        # Who begins to go, or to come again, has a life from that moment on.
        lives = {
            vm["name"]: vm["_timeline"][0][0]
            for _, vm in self._store.list(INSTANCE.stored)
            if startup_told.shared_folder(vm) == (self._bucket, self._folder)
        }
        found = []
        for it in course["nodes"]:
            gone = math.inf if it["instance_id"] in there else self._request.now
            if lives.get(it["name"], 0.0) > self._kept["begins"]:
                gone = lives[it["name"]]
            if gone < ended:
                found.append(it["rank"])
        return found

    def _failed(  # noqa: PLR0913, PLR0917 - what is told of a failure
        self,
        course: Resource,
        spec: Resource,
        rank: int,
        code: int | None,
        cause: str,
        said: list[str],
        *,
        final: bool = False,
        ran: float | None = None,
    ) -> Resource:
        vm = course["nodes"][rank]["name"]
        failure = {
            "vm": vm, "rank": rank, "code": code, "cause": cause, "tail": "\n".join(said[-20:]),
            "final": final, "ran": ran,
        }  # fmt: skip
        failures = course["failures"] + 1
        words = ": ".join(filter(None, ["" if code is None else f"exit code {code}", cause]))
        who = f"rank {rank}" if self._index is None else f"task {self._index}"
        event = f"attempt {course['attempt']} failed: {who} ({vm}), {words}"
        ended = course | {"failure": failure, "failures": failures, "since": self._request.now}
        on, is_bug = spec["restart_on"], ran is not None and (ran < _LONG or code in _NEVER_RUNS)
        stays = on != "any" and ran is not None and (is_bug or on == "lost")
        if final or failures > spec["restarts"]:
            return self._over(ended | {"events": [*course["events"], event]}, "failed", "")
        if stays:
            why = "another attempt would do the same" if is_bug else "--restart-on is lost"
            event += f"; no restart: it failed after {ran:.0f} s with all of its machines there,"
            event += f" and {why}; --restart-on any begins it again all the same"
            return self._over(ended | {"events": [*course["events"], event]}, "failed", "")
        again = f"{event}; restart {failures} of {spec['restarts']}"
        return ended | {"state": "waiting", "why": "", "events": [*course["events"], again]}

    def _over(self, course: Resource, state: str, why: str) -> Resource:
        return course | {"state": state, "why": why, "since": self._request.now}

    def _say(self, course: Resource, lines: list[str]) -> None:
        """Write what each rank has said since its last piece: all run the same."""
        text = "".join(f"{line}\n" for line in lines).encode()
        for node in course["nodes"]:
            self._write_log(course, node["rank"], text)

    def _write_log(self, course: Resource, rank: int, text: bytes) -> None:
        """Write what a rank has said since its last piece."""
        written = self._kept["written"][rank]
        if text[written:]:
            prefix = f"vms/jobs/{course['name']}/logs/{course['attempt']}"
            place = rank if self._index is None else self._index
            self.write(f"{prefix}/{place}/{written:015d}", text[written:])
            self._kept["written"][rank] = len(text)

    def _archive(self, spec: Resource) -> bytes | None:
        name = f"{self._folder}/jobs/files/{spec['files']}.tar.gz"
        found = objects.live(self._store, self._bucket, name) if spec["files"] else None
        return None if found is None else objects.content(self._store, found)

    def read(self, name: str) -> dict[str, Any]:
        """A document of the folder; {} for none."""
        return vm_documents.read(self._store, self._bucket, f"{self._folder}/{name}")

    def write(self, name: str, content: Resource | bytes) -> None:
        """Write an object, unless it is so already."""
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        found = objects.live(self._store, self._bucket, f"{self._folder}/{name}")
        if found is not None and objects.content(self._store, found) == text:
            return
        plain = replace(self._request, query={}, parameters=(), headers={})
        metadata = {"name": f"{self._folder}/{name}", "contentType": "application/json"}
        objects.create(plain, self._store, self._bucket, metadata, text)


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
_NO_IMAGE = "/missing"  # how the name of a container image ends that no registry has
_SEALING = 240.0  # how long it takes to install docker and the like, and to clean a VM; a guess


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
        struck = self.store.get(VICTIMS, key)
        if struck is None:
            struck = {"vm": min(self.vms)}
            self.store.put(VICTIMS, key, struck)
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


def full_disks(scene: Scene, vm: str) -> list[str]:
    """What a VM's agent says of its disks and mounts."""
    return ["the boot disk is 97 % full"] if scene.strikes("full-disk", vm) else []


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
    groups = [kept for _, kept in scene.store.list(COLLECTION)]
    runs = [*groups, *(run for kept in groups for run in kept.get("runs", ()))]
    running = [it["course"] for it in runs if (it["course"] or {}).get("state") == "running"]
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
