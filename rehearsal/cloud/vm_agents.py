"""The agents on VMs: they hear of a task by its object, and answer in objects of their own.

The real ones poll Cloud Storage. Here the object that comes is seen as it comes; what each VM will
have answered is known then, and is written when its moment has come and somebody asks for anything
in Cloud Storage.

What the agents of VMs say of themselves, and agree on, in the folder that they share.

The real ones write all the time. Here the objects are brought up to date when somebody asks for
them: a member for each VM whose agent runs, with a heartbeat each minute, the roster of those, and
what the head of a Slurm says of its nodes.

VMs that power themselves off: all of a group were idle for as long as their configuration says.

The real agents look all the time. Here it is found out when somebody asks Compute Engine, as of the
moment at which the time was over. A VM works while it starts up, and while a job is under way.
"""

import contextlib
import ipaddress
import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud import compute, vm_documents, vm_jobs, vm_queue
from rehearsal.cloud.compute import fleet, startup_told
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, Resource
from rehearsal.cloud.facts import bandwidths
from rehearsal.cloud.facts import host_events as facts
from rehearsal.cloud.storage import buckets, objects
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service, moment, rfc3339

_COLLECTION = "vms/answers"
_TASK = "-deployment/vms/task.json"
_DONE, _RUNNING, _FAILED, _REFUSED = "done", "running", "failed", "refused"


def among(service: Service) -> Service:
    """A service of Cloud Storage, in whose buckets VMs answer to tasks."""

    def answer(request: Request, store: Store) -> Reply:
        _catch_up(request, store)
        reply = service(request, store)
        made = reply.body if isinstance(reply.body, dict) else {}
        if request.method in {"POST", "PUT"} and str(made.get("name", "")).endswith(_TASK):
            _hear(request, store, made)
        return reply

    return answer


def _hear(request: Request, store: Store, made: dict[str, Any]) -> None:
    """Note what each VM will answer to a task."""
    found = objects.live(store, made["bucket"], made["name"])
    if found is None:
        return
    task = json.loads(objects.content(store, found))
    folder = made["name"].removesuffix("task.json")
    vms = {
        it["name"]: it
        for _, it in store.list(INSTANCE.stored)
        if task["vms"].get(it["name"]) == it["id"] and fleet.agent_works(store, it, request.now)
    }
    scene = vm_jobs.Scene(
        store=store, scenarios=request.scenarios, folder=folder, vms=vms, now=request.now
    )
    for name, vm in vms.items():
        about = {"id": task["id"], "kind": task["kind"], "vm": name, "instance_id": vm["id"]}
        where = (made["bucket"], f"{folder}results/{task['id']}/{name}.json")
        done = vm_jobs.answer(scene, vm, task["kind"], task["arguments"])
        if done is None:
            refused = {"state": _REFUSED, "detail": f"{task['kind']} is not known", "answer": None}
            _note(request, store, where, bandwidths.HEARING, about | refused)
            continue
        running = {"state": _RUNNING, "detail": "", "answer": None}
        _note(request, store, where, bandwidths.HEARING, about | running)
        seconds = bandwidths.HEARING + min(done.seconds, task["seconds"])
        state = "late" if done.seconds > task["seconds"] else _FAILED if done.failure else _DONE
        ended = {"state": state, "detail": done.failure, "answer": done.answer}
        _note(request, store, where, seconds, about | ended)


def _note(
    request: Request,
    store: Store,
    where: tuple[str, str],
    seconds: float,
    document: dict[str, Any],
) -> None:
    name = f"{request.after(seconds):020.6f} {store.count(_COLLECTION):09d}"
    bucket, key = where
    store.put(_COLLECTION, name, {"bucket": bucket, "name": key, "document": document})


def _catch_up(request: Request, store: Store) -> None:
    """Write the answers whose moment has come."""
    while (entry := store.first(_COLLECTION)) is not None:
        name, body = entry
        moment = float(name.partition(" ")[0])
        if moment > request.now:
            return
        store.delete(_COLLECTION, name)
        vm = body["document"]["vm"]
        if not any(it["name"] == vm for _, it in store.list(INSTANCE.stored)):
            continue
        plain = replace(request, now=moment, query={}, parameters=(), headers={})
        content = json.dumps({**body["document"], "at": rfc3339(moment)}).encode()
        metadata = {"name": body["name"], "contentType": "application/json"}
        with contextlib.suppress(GoogleError):  # the bucket may be gone
            objects.create(plain, store, body["bucket"], metadata, content)


_ASKED = re.compile(r"b/(?P<bucket>[^/]+)/o(?:/(?P<name>[^/]+))?|(?P<xml>[^/]+)/(?P<key>.+)")
KNOWN = "name command nodes restarts seconds env files image restart_on secrets mounts gpus array"
"""What these agents read of a job."""
_BEAT = 60.0  # seconds between heartbeats
_GONE = 200.0  # seconds without one after which the others take a VM for gone
_OURS = re.compile(r"(?P<folder>.+-deployment)/vms/(?:roster\.json|members/.*|slurm/nodes\.json)")


def agree(service: Service) -> Service:
    """A service of Cloud Storage, in whose buckets VMs say who they are."""

    def answer(request: Request, store: Store) -> Reply:
        if request.method == "GET" and not request.arranged:
            for bucket, folder in _folders(request, store):
                if store.get(buckets.COLLECTION, bucket) is not None:
                    _agree_in(request, store, bucket, folder)
        return service(request, store)

    return answer


def _folders(request: Request, store: Store) -> set[tuple[str, str]]:
    """Bucket and state folder of each whose VMs say of themselves what a request is about."""
    match = _ASKED.fullmatch(request.path)
    if match is None:
        return set()
    bucket, named = unquote(match["bucket"] or match["xml"]), match["name"] or match["key"]
    if not named and "vms/members/" in request.query.get("matchGlob", ""):
        every = (startup_told.shared_folder(vm) for _, vm in store.list(INSTANCE.stored))
        start = request.query.get("prefix", "")
        return {it for it in every if it and it[0] == bucket and f"{it[1]}/".startswith(start)}
    ours = _OURS.fullmatch(unquote(named or "") or request.query.get("prefix", ""))
    return {(bucket, ours["folder"])} if ours else set()


def _agree_in(request: Request, store: Store, bucket: str, folder: str) -> None:
    vms = {
        vm["name"]: vm
        for _, vm in store.list(INSTANCE.stored)
        if startup_told.shared_folder(vm) == (bucket, folder)
        and fleet.agent_works(store, vm, request.now)
        and _may_write(store, vm, bucket, f"{folder}/vms/members/{vm['name']}.json")
    }
    if not vms:  # nobody who would write, or none of this cloud's VMs does
        return
    scene = vm_jobs.Scene(
        store=store,
        scenarios=request.scenarios,
        folder=f"{folder}/vms/",
        vms=vms,
        now=request.now,
    )
    living = {
        name: _member(vm, vm_jobs.complaints(scene, name), vm_jobs.full_disks(scene, name))
        for name, vm in vms.items()
    }
    made = {
        name
        for name, member in living.items()
        if _write(request, store, bucket, f"{folder}/vms/members/{name}.json", member)
    }
    plain = replace(request, query={}, headers={}, body=b"")
    for found in list(objects.of_bucket(store, bucket, f"{folder}/vms/members/", versions=False)):
        name = found["name"].rpartition("/")[2].removesuffix(".json")
        silent = request.now - moment(found["updated"])
        if name in living and (name in made or silent >= _BEAT * request.rate):
            beat = replace(plain, body=_beat(vms[name], request.now))
            objects.change(beat, store, bucket, found["name"])
        elif name not in living and silent < _GONE * request.rate:
            member = vm_documents.read(store, bucket, found["name"])
            if vm_documents.is_member(member):
                living[name] = member
        elif name not in living:
            objects.delete(plain, store, bucket, found["name"])
    _queue(request, store, bucket, scene)
    size = vm_documents.size(vm_documents.read(store, bucket, f"{folder}/vms/group.json"))
    if size is None:  # nobody has said it so that an agent could read it: what is decided stays
        return
    before = vm_documents.read(store, bucket, f"{folder}/vms/roster.json")
    gone = rfc3339(request.after(-_GONE))
    seats = vm_documents.seats(before)
    members = _seated(seats, living, size, gone)
    if (before.get("nnodes"), before.get("members")) != (size, members):
        generation = before["generation"] + 1 if seats else 1
        document = {"nnodes": size, "generation": generation, "members": members}
        _write(request, store, bucket, f"{folder}/vms/roster.json", document)


def _queue(request: Request, store: Store, bucket: str, scene: vm_jobs.Scene) -> None:
    """Say what Slurm has: the first of its VMs leads, and drains those whose GPUs complain."""
    up = [
        vm
        for _, vm in sorted(scene.vms.items())
        if startup_told.has_slurm(vm) and startup_told.has_done(vm, "slurm", request.now)
    ]
    if not up:
        return
    nodes, has = [], {vm["name"]: int(startup_told.gpu_check(vm).get("gpus") or 0) for vm in up}
    in_use = _in_use(store, bucket, scene.folder.removesuffix("vms/"), has)
    for vm in up:
        gpus, used = has[vm["name"]], in_use[vm["name"]]
        bad = vm_jobs.complaints(scene, vm["name"])
        free = "draining" if used and bad else "drained" if bad else "idle"
        state = free if bad or not used else "allocated" if used == gpus else "mixed"
        node = {"name": vm["name"], "state": state, "reason": "; ".join(bad)}
        nodes.append(node | {"gpus": gpus, "gpus_in_use": used})
    name = f"{scene.folder}slurm/nodes.json"
    before = vm_documents.read(store, bucket, name)
    said = {"head": up[0]["name"], "nodes": nodes}
    if before | said != before or request.now - before["at"] >= _BEAT * request.rate:
        _write(request, store, bucket, name, {"at": request.now, **said})


def _in_use(store: Store, bucket: str, folder: str, has: dict[str, int]) -> dict[str, int]:
    """How many of the GPUs of each VM jobs have; tasks take the first that are free."""

    def read(name: str) -> dict[str, Any]:
        return vm_documents.read(store, bucket, f"{folder}{name}")

    used = dict.fromkeys(has, 0)
    for it in vm_documents.wanted(read("jobs/index.json")):
        course = read(f"vms/jobs/{it['name']}/course.json")
        if course.get("state") != "running":
            continue
        part = read(f"jobs/{it['name']}.json").get("gpus")
        for vm in (node["name"] for node in course["nodes"] if node["name"] in has):
            used[vm] = min(has[vm], used[vm] + (part or has[vm]))
        for _ in range((course.get("tasks") or {}).get("running", 0)):
            free = (vm for vm in has if used[vm] + (part or has[vm]) <= has[vm])
            if (vm := next(free, None)) is not None:
                used[vm] += part or has[vm]
    return used


def _beat(vm: Resource, now: float) -> bytes:
    """What a VM says with a heartbeat: beside that it lives, of a start-up that is done."""
    told = startup_told.document(vm, now) or {}
    done = json.dumps(told) if told.get("state") == "done" else None
    notes = {"renewed": rfc3339(now), "startup": done, "knows": KNOWN}
    return json.dumps({"metadata": notes}).encode()


def _may_write(store: Store, vm: Resource, bucket: str, name: str) -> bool:
    """Whether a VM's account may say that it lives; one without an account is a test's own."""
    members = [f"serviceAccount:{it['email']}" for it in vm.get("serviceAccounts") or []]
    return not members or any(buckets.may_write(store, bucket, it, name) for it in members)


def _member(vm: Resource, faults: list[str], disks: list[str]) -> dict[str, Any]:
    address = vm["networkInterfaces"][0]["networkIP"]
    return {
        "name": vm["name"],
        "instance_id": vm["id"],
        "address": str(ipaddress.IPv4Address(address)),
        "boot": startup_told.boot_of(vm),
        "key": "",
        "host_keys": [],
        "faults": faults,
        "disks": disks,
        "account": next(iter(vm.get("_accounts", {}).values()), ""),
    }


def _seated(
    before: list[Any], living: dict[str, Any], size: int, gone: str
) -> list[dict[str, Any]]:
    """The ranks: who has one keeps it, and others get those that nobody present has."""
    seats = {
        it["rank"]: {"rank": it["rank"], "present": True, **living[it["name"]]}
        if it["name"] in living
        else {"since": gone, **it, "present": False}
        for it in before
        if it["rank"] < size
    }
    seated = {it["name"] for it in seats.values()}
    free = [rank for rank in range(size) if rank not in seats]
    left = [rank for rank, it in sorted(seats.items()) if not it["present"]]
    newcomers = sorted(living.keys() - seated)
    for rank, name in zip([*free, *left], newcomers, strict=False):
        seats[rank] = {"rank": rank, "present": True, **living[name]}
    return [seats[rank] for rank in sorted(seats)]


def _write(
    request: Request, store: Store, bucket: str, name: str, document: dict[str, Any]
) -> bool:
    """Write an object, unless it says that already; whether it was written."""
    if vm_documents.read(store, bucket, name) == document:
        return False
    plain = replace(request, query={}, headers={})
    metadata = {"name": name, "contentType": "application/json"}
    objects.create(plain, store, bucket, metadata, json.dumps(document).encode())
    return True


def compute_service(request: Request, store: Store) -> Reply:
    """Compute Engine, which sees the VMs that have powered themselves off."""
    for name, group in list(store.list(GROUP_MANAGER.stored)):
        if group["instanceLifecyclePolicy"]["defaultActionOnFailure"] == "DO_NOTHING":
            _power_off(request, store, name)
    return compute.service(request, store)


def _power_off(request: Request, store: Store, group: str) -> None:
    found = {
        name: vm
        for name, vm in store.list(INSTANCE.stored)
        if vm["_group"] == group
        and "_gone" not in vm
        and fleet.status(vm, request.now) == "RUNNING"
        and (vm.get("_startup") or {}).get("idle")
        and vm["_startup"]["pace"]  # without a clock no time passes
    }
    if not found:
        return
    quiet = 0.0
    for vm in found.values():
        told = vm["_startup"]
        where = startup_told.shared_folder(vm)
        jobs = vm_queue.quiet_since(store, where) if where else 0.0
        if jobs is None:
            return
        started = told["begins"] + startup_told.length(told["skipped"]) * told["pace"]
        quiet = max(quiet, started, jobs)
    for name, vm in found.items():
        told = vm["_startup"]
        moment = quiet + told["idle"] * told["pace"]
        if moment > request.now:
            continue
        off = moment + facts.STOP * told["pace"]
        timeline = [[moment, "STOPPING"], [off, "TERMINATED"]]
        store.put(INSTANCE.stored, name, {**vm, "_timeline": timeline, "_action": "none"})
        _tell(request, store, vm, moment)


def _tell(request: Request, store: Store, vm: Resource, moment: float) -> None:
    where = startup_told.shared_folder(vm)
    if where is None:
        return
    bucket, folder = where
    content: dict[str, Any] = {"vm": vm["name"], "at": moment}
    plain = replace(request, query={}, parameters=(), headers={})
    metadata = {"name": f"{folder}/vms/idle.json", "contentType": "application/json"}
    with contextlib.suppress(GoogleError):  # the bucket may be gone
        objects.create(plain, store, bucket, metadata, json.dumps(content).encode())
