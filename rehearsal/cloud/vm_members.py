"""What the agents of VMs say of themselves, and agree on, in the folder that they share.

The real ones write all the time. Here the objects are brought up to date when somebody asks for
them: a member for each VM whose agent runs, with a heartbeat each minute, and the roster of those.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rehearsal.cloud import vm_tasks
from rehearsal.cloud.compute import fleet, startup_told
from rehearsal.cloud.compute.resources import INSTANCE
from rehearsal.cloud.instants import moment, rfc3339
from rehearsal.cloud.storage import buckets, objects

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Resource
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Reply, Request, Service

_ASKED = re.compile(r"b/(?P<bucket>[^/]+)/o(?:/(?P<name>[^/]+))?|(?P<xml>[^/]+)/(?P<key>.+)")
_BEAT = 60.0
"""Seconds between heartbeats."""
_GONE = 200.0
"""Seconds without one after which the others take a VM for gone."""
_OURS = re.compile(r"(?P<folder>.+-deployment)/vms/(?:roster\.json|members/.*)")


def among(service: Service) -> Service:
    """A service of Cloud Storage, in whose buckets VMs say who they are."""

    def answer(request: Request, store: Store) -> Reply:
        if request.method == "GET" and (asked := _folder(request)):
            bucket, folder = asked
            if store.get(buckets.COLLECTION, bucket) is not None:
                _agree(request, store, bucket, folder)
        return service(request, store)

    return answer


def _folder(request: Request) -> tuple[str, str] | None:
    """Bucket and state folder, if a request is about what the VMs of one say of themselves."""
    match = _ASKED.fullmatch(request.path)
    if match is None:
        return None
    name = unquote(match["name"] or match["key"] or "") or request.query.get("prefix", "")
    ours = _OURS.fullmatch(name)
    return (unquote(match["bucket"] or match["xml"]), ours["folder"]) if ours else None


def _agree(request: Request, store: Store, bucket: str, folder: str) -> None:
    vms = {
        vm["name"]: vm
        for _, vm in store.list(INSTANCE.stored)
        if startup_told.shared_folder(vm) == (bucket, folder)
        and fleet.agent_works(store, vm, request.now)
    }
    if not vms:  # nobody who would write, or none of this cloud's VMs does
        return
    scene = vm_tasks.Scene(
        store=store,
        scenarios=request.scenarios,
        folder=f"{folder}/vms/",
        vms=vms,
        now=request.now,
    )
    living = {name: _member(vm, vm_tasks.complaints(scene, name)) for name, vm in vms.items()}
    for name, member in living.items():
        _write(request, store, bucket, f"{folder}/vms/members/{name}.json", member)
    plain = replace(request, query={}, headers={}, body=b"")
    for found in list(objects.of_bucket(store, bucket, f"{folder}/vms/members/", versions=False)):
        name = found["name"].rpartition("/")[2].removesuffix(".json")
        silent = request.now - moment(found["updated"])
        if name in living and silent >= _BEAT * request.rate:
            objects.change(plain, store, bucket, found["name"], whole=False)
        elif name not in living and silent < _GONE * request.rate:
            living[name] = _read(store, bucket, found["name"])
        elif name not in living:
            objects.delete(plain, store, bucket, found["name"])
    size = _read(store, bucket, f"{folder}/vms/group.json").get("instance_count")
    if size is None:
        return
    before = _read(store, bucket, f"{folder}/vms/roster.json")
    gone = rfc3339(request.after(-_GONE))
    members = _seated(before.get("members", []), living, size, gone)
    if (before.get("nnodes"), before.get("members")) != (size, members):
        generation = before.get("generation", 0) + 1
        document = {"nnodes": size, "generation": generation, "members": members}
        _write(request, store, bucket, f"{folder}/vms/roster.json", document)


def _member(vm: Resource, faults: list[str]) -> dict[str, Any]:
    address = vm["networkInterfaces"][0]["networkIP"]
    return {
        "name": vm["name"],
        "instance_id": vm["id"],
        "address": str(ipaddress.IPv4Address(address)),
        "boot": startup_told.boot_of(vm),
        "key": "",
        "host_keys": [],
        "faults": faults,
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


def _read(store: Store, bucket: str, name: str) -> dict[str, Any]:
    found = objects.live(store, bucket, name)
    document: dict[str, Any] = {} if found is None else json.loads(objects.content(store, found))
    return document


def _write(
    request: Request, store: Store, bucket: str, name: str, document: dict[str, Any]
) -> None:
    if _read(store, bucket, name) == document:
        return
    plain = replace(request, query={}, headers={})
    metadata = {"name": name, "contentType": "application/json"}
    objects.create(plain, store, bucket, metadata, json.dumps(document).encode())
