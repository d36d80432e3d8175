"""VMs that power themselves off: all of a group were idle for as long as their configuration says.

The real agents look all the time. Here it is found out when somebody asks Compute Engine, as of the
moment at which the time was over. A VM works while it starts up, and while a job is under way.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rehearsal.cloud import compute, vm_jobs
from rehearsal.cloud.compute import fleet, startup_steps, startup_told
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE
from rehearsal.cloud.facts import host_events as facts
from rehearsal.cloud.storage import objects
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Resource
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Reply, Request


def service(request: Request, store: Store) -> Reply:
    """Compute Engine, which sees the VMs that have powered themselves off."""
    for name, group in list(store.list(GROUP_MANAGER.stored)):
        if group["instanceLifecyclePolicy"]["defaultActionOnFailure"] == "DO_NOTHING":
            _catch_up(request, store, name)
    return compute.service(request, store)


def _catch_up(request: Request, store: Store, group: str) -> None:
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
        jobs = vm_jobs.quiet_since(store, where) if where else 0.0
        if jobs is None:
            return
        started = told["begins"] + startup_steps.length(told["skipped"]) * told["pace"]
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
