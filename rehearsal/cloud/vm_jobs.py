"""Jobs on the VMs of a group: what their agents make of the folder `jobs/`.

The real ones look all the time. Here the course of a group's jobs is brought up to date when
somebody asks for anything in Cloud Storage: one job after the other, on all of its VMs at once. A
VM whose account may not read the folder hears of nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rehearsal.cloud import vm_programs
from rehearsal.cloud.compute import fleet, startup_told
from rehearsal.cloud.compute.resources import INSTANCE
from rehearsal.cloud.facts import bandwidths
from rehearsal.cloud.storage import access, objects
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.compute.resources import Resource
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Reply, Request, Service

COLLECTION = "vms/jobs"
_INDEX = re.compile(r"(?P<folder>.+-deployment)/jobs/index\.json")
_OVER = frozenset({"succeeded", "failed", "cancelled"})
_TOLD_TO_END = 143


def among(service: Service) -> Service:
    """A service of Cloud Storage, in whose buckets VMs find jobs."""

    def answer(request: Request, store: Store) -> Reply:
        if request.method == "GET":
            for _, group in list(store.list(COLLECTION)):
                with contextlib.suppress(GoogleError):  # the bucket may be gone
                    _Group(request, store, group).go_on()
        reply = service(request, store)
        made = reply.body if isinstance(reply.body, dict) else {}
        found = _INDEX.fullmatch(str(made.get("name", "")))
        if request.method in {"POST", "PUT"} and found:
            where = {"bucket": made["bucket"], "folder": found["folder"]}
            key = f"{where['bucket']} {where['folder']}"
            if store.get(COLLECTION, key) is None:
                store.put(COLLECTION, key, where | {"course": None})
        return reply

    return answer


def quiet_since(store: Store, where: tuple[str, str]) -> float | None:
    """Since when the VMs of a bucket's folder have had no job (Unix epoch, 0 if there was none).

    None while there is one, or one waits.
    """
    bucket, folder = where

    def read(name: str) -> dict[str, Any]:
        found = objects.live(store, bucket, f"{folder}/{name}")
        document: dict[str, Any] = json.loads(objects.content(store, found)) if found else {}
        return document

    waits = read("jobs/index.json").get("jobs", [])
    if any(not read(f"vms/jobs/{it['name']}/course.json") for it in waits):
        return None
    return float(read("vms/job.json").get("since", 0.0))


class _Group:
    """The VMs of one folder, and the job that they are at."""

    def __init__(self, request: Request, store: Store, kept: Resource) -> None:
        self._request = request
        self._store = store
        self._kept = kept
        self._bucket = kept["bucket"]
        self._folder = kept["folder"]

    def go_on(self) -> None:
        """Do all that is due."""
        index = self._read("jobs/index.json").get("jobs", [])
        living = self._living()
        if not living:
            return
        cancelled = {it["name"] for it in index if it["cancelled"]}
        for name in cancelled:
            if not self._is_over(name) and name != (self._kept["course"] or {}).get("name"):
                gone = self._new(name, "it was cancelled") | {"state": "cancelled"}
                self._write(f"vms/jobs/{name}/course.json", gone)
        while True:
            course = self._kept["course"] or self._next(index)
            if course is None:
                break
            before = json.dumps(course)
            course = self._followed(course, living, cancelled=course["name"] in cancelled)
            self._keep(course)
            if course["state"] not in _OVER and json.dumps(course) == before:
                break
        self._store.put(COLLECTION, f"{self._bucket} {self._folder}", self._kept)

    def _living(self) -> list[tuple[int, Resource]]:
        """The VMs that hear of jobs, with their ranks."""
        roster = self._read("vms/roster.json").get("members", [])
        ranks = {it["name"]: it["rank"] for it in roster}
        found = [
            (ranks[vm["name"]], vm)
            for _, vm in self._store.list(INSTANCE.stored)
            if vm["name"] in ranks
            and startup_told.shared_folder(vm) == (self._bucket, self._folder)
            and fleet.agent_works(self._store, vm, self._request.now)
            and any(
                access.may_read(
                    self._store,
                    self._bucket,
                    f"serviceAccount:{it['email']}",
                    f"{self._folder}/jobs/index.json",
                )
                for it in vm.get("serviceAccounts") or []
            )
        ]
        return sorted(found, key=lambda one: one[0])

    def _next(self, index: list[Resource]) -> Resource | None:
        names = (it["name"] for it in index if not self._is_over(it["name"]))
        name = next(names, None)
        return None if name is None else self._new(name, "the VMs get ready")

    def _new(self, name: str, why: str) -> Resource:
        began = {"attempt": 0, "failures": 0, "nodes": [], "began": None, "ends": None}
        told: Resource = {"failure": None, "events": [], "since": self._request.now}
        return {"name": name, "state": "waiting", "why": why, **began, **told}

    def _followed(
        self, course: Resource, living: list[tuple[int, Resource]], *, cancelled: bool
    ) -> Resource:
        if course["state"] == "running":
            return self._running(course, living, cancelled=cancelled)
        if cancelled:
            return self._over(course, "cancelled", "it was cancelled")
        spec = self._read(f"jobs/{course['name']}.json")
        group = self._read("vms/group.json").get("instance_count", 0)
        # Through Ray a program runs on the head alone, here the first, and its tasks anywhere.
        wanted = 1 if startup_told.has_ray(living[0][1]) else spec["nodes"] or group
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
        self._kept["begins"], self._kept["written"] = begins, 0
        return course | started | {"began": began, "ends": ends, "since": begins, "failure": None}

    def _running(
        self, course: Resource, living: list[tuple[int, Resource]], *, cancelled: bool
    ) -> Resource:
        spec = self._read(f"jobs/{course['name']}.json")
        done = vm_programs.course(spec["command"], self._files(spec), course["name"])
        now, rate = self._request.now, self._request.rate
        ended = self._kept["begins"] + done.seconds * rate
        there = {vm["id"] for _, vm in living}
        lost = [node for node in course["nodes"] if node["instance_id"] not in there]
        said = [line for at, line in done.said if self._kept["begins"] + at * rate <= now]
        if cancelled and now < ended:
            self._say(course, [*said, "=== aiinfra: SIGTERM: it was cancelled ==="])
            return self._over(course, "cancelled", "it was cancelled")
        if course["ends"] is not None and min(now, ended) >= course["ends"]:
            self._say(course, [*said, "=== aiinfra: SIGTERM: --time is over ==="])
            return self._failed(course, spec, 0, _TOLD_TO_END, "--time is over", said, final=True)
        self._say(course, said)
        if now >= ended:
            if done.code == 0:
                return self._over(course, "succeeded", done.why)
            cause = "command not found" if done.code == 127 else ""  # noqa: PLR2004 - bash's
            return self._failed(course, spec, 0, done.code, cause, said)
        if lost:
            cause = f"the VM {lost[0]['name']} was lost, or does not answer"
            return self._failed(course, spec, lost[0]["rank"], None, cause, [])
        return course

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
    ) -> Resource:
        vm = course["nodes"][rank]["name"]
        failure = {
            "vm": vm, "rank": rank, "code": code, "cause": cause, "tail": "\n".join(said[-20:]),
            "final": final,
        }  # fmt: skip
        failures = course["failures"] + 1
        words = ": ".join(filter(None, ["" if code is None else f"exit code {code}", cause]))
        event = f"attempt {course['attempt']} failed: rank {rank} ({vm}), {words}"
        ended = course | {"failure": failure, "failures": failures, "since": self._request.now}
        if final or failures > spec["restarts"]:
            events = [*course["events"], event]
            return self._over(ended | {"events": events}, "failed", "")
        again = f"{event}; restart {failures} of {spec['restarts']}"
        return ended | {"state": "waiting", "why": "", "events": [*course["events"], again]}

    def _over(self, course: Resource, state: str, why: str) -> Resource:
        return course | {"state": state, "why": why, "since": self._request.now}

    def _keep(self, course: Resource) -> None:
        is_over = course["state"] in _OVER
        if is_over:
            self._write(f"vms/jobs/{course['name']}/course.json", course)
        self._write("vms/job.json", course)
        self._kept["course"] = None if is_over else course

    def _say(self, course: Resource, lines: list[str]) -> None:
        """Write what rank 0 has said since the last piece."""
        text = "".join(f"{line}\n" for line in lines).encode()
        written = self._kept["written"]
        if text[written:]:
            prefix = f"vms/jobs/{course['name']}/logs/{course['attempt']}/0/"
            self._write(f"{prefix}{written:015d}", text[written:])
            self._kept["written"] = len(text)

    def _files(self, spec: Resource) -> Mapping[str, str]:
        name = f"{self._folder}/jobs/files/{spec['files']}.tar.gz"
        found = objects.live(self._store, self._bucket, name) if spec["files"] else None
        return {} if found is None else vm_programs.files_of(objects.content(self._store, found))

    def _is_over(self, name: str) -> bool:
        return bool(self._read(f"vms/jobs/{name}/course.json"))

    def _read(self, name: str) -> dict[str, Any]:
        found = objects.live(self._store, self._bucket, f"{self._folder}/{name}")
        text = b"{}" if found is None else objects.content(self._store, found)
        document: dict[str, Any] = json.loads(text)
        return document

    def _write(self, name: str, content: Resource | bytes) -> None:
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        found = objects.live(self._store, self._bucket, f"{self._folder}/{name}")
        if found is not None and objects.content(self._store, found) == text:
            return
        plain = replace(self._request, query={}, parameters=(), headers={})
        metadata = {"name": f"{self._folder}/{name}", "contentType": "application/json"}
        objects.create(plain, self._store, self._bucket, metadata, text)
