"""The agents on VMs: they hear of a task by its object, and answer in objects of their own.

The real ones poll Cloud Storage. Here the object that comes is seen as it comes; what each VM will
have answered is known then, and is written when its moment has come and somebody asks for anything
in Cloud Storage.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rehearsal.cloud import vm_tasks
from rehearsal.cloud.compute import fleet
from rehearsal.cloud.compute.resources import INSTANCE
from rehearsal.cloud.facts import bandwidths
from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.storage import objects
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Reply, Request, Service

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
    scene = vm_tasks.Scene(
        store=store, scenarios=request.scenarios, folder=folder, vms=vms, now=request.now
    )
    for name, vm in vms.items():
        about = {"id": task["id"], "kind": task["kind"], "vm": name, "instance_id": vm["id"]}
        where = (made["bucket"], f"{folder}results/{task['id']}/{name}.json")
        done = vm_tasks.answer(scene, vm, task["kind"], task["arguments"])
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
