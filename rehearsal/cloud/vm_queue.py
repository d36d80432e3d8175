"""The jobs of a group of VMs, and which of them has which VMs when.

The real agents and Slurm look all the time. Here the folder `jobs/` is brought up to date when
somebody asks for anything in Cloud Storage. Without Slurm, one job after the other runs, on all of
its VMs at once. With it they run side by side, each on the first VMs that have its GPUs free, and a
later one that fits does not wait for an earlier one: of Slurm's priorities, reservations and
changes of its head there is nothing here, nor of what people send to it themselves. A VM whose
account may not read the folder hears of nothing.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from rehearsal.cloud import real_programs, vm_documents, vm_jobs
from rehearsal.cloud.compute import fleet, startup_told
from rehearsal.cloud.compute.resources import INSTANCE, Resource
from rehearsal.cloud.storage import buckets
from rehearsal.cloud.store import Store
from rehearsal.cloud.vm_jobs import COLLECTION, OVER, Run
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service

_INDEX = re.compile(r"(?P<folder>.+-deployment)/jobs/index\.json")
_STATES = ("waiting", "running", "succeeded", "failed", "cancelled")
_CANCELLED = "it was cancelled"


def among(service: Service) -> Service:
    """A service of Cloud Storage, in whose buckets VMs find jobs."""

    def answer(request: Request, store: Store) -> Reply:
        if request.method == "GET" and not request.arranged:
            for _, group in list(store.list(COLLECTION)):
                with contextlib.suppress(GoogleError):  # the bucket may be gone
                    _Group(request, store, group).go_on()
        reply = service(request, store)
        made = reply.body if isinstance(reply.body, dict) else {}
        found = _INDEX.fullmatch(str(made.get("name", "")))
        if request.method in {"POST", "PUT"} and found:
            where = {"bucket": made["bucket"], "folder": found["folder"]}
            key = f"{where['bucket']} {where['folder']}"
            group = store.get(COLLECTION, key) or where | {"course": None}
            _Group(request, store, group).take()
        return reply

    return answer


def quiet_since(store: Store, where: tuple[str, str]) -> float | None:
    """Since when a folder's VMs have had no job (Unix epoch, 0: never); None while one is there."""
    bucket, folder = where

    def read(name: str) -> dict[str, Any]:
        return vm_documents.read(store, bucket, f"{folder}/{name}")

    waits = vm_documents.wanted(read("jobs/index.json"))
    courses = [read(f"vms/jobs/{it['name']}/course.json") for it in waits]
    if any(it.get("state") not in OVER for it in courses):
        return None
    return max(float(it.get("since", 0.0)) for it in (read("vms/job.json"), *courses))


class _Group:
    def __init__(self, request: Request, store: Store, kept: Resource) -> None:
        self._request = request
        self._store = store
        self._kept = kept
        self._bucket = kept["bucket"]
        self._folder = kept["folder"]
        self._others: Collection[str] = ()  # jobs that another process runs
        self._all = Run(request, store, kept)

    def take(self) -> Collection[str]:
        """Take the jobs whose programs are to be really run; those that another process has."""
        index, place = self._all.read("jobs/index.json"), self._request.place
        owners = {it["name"]: "" for it in vm_documents.wanted(index)}
        owners |= {it: who for it, who in self._kept.get("owners", {}).items() if it in owners}
        others: set[str] = set()
        if place is not None:
            others = {it for it, who in owners.items() if real_programs.is_anothers(place, who)}
            free = owners.keys() - others
            if free and real_programs.SCENARIO in self._request.scenarios:
                owners |= dict.fromkeys(free, real_programs.owner(place))
        self._kept["owners"] = owners
        self._keep()
        return others

    def _keep(self) -> None:
        self._store.put(COLLECTION, f"{self._bucket} {self._folder}", self._kept)

    def go_on(self) -> None:
        """Do all that is due."""
        document = self._all.read("jobs/index.json")
        if not document:  # the cluster was destroyed: one of that name has its own
            self._store.delete(COLLECTION, f"{self._bucket} {self._folder}")
            return
        index = vm_documents.wanted(document)
        living = self._living()
        if not living:
            return
        self._others = self.take()
        cancelled = {it["name"] for it in index if it["cancelled"]}
        names = [it["name"] for it in index if not self._is_over(it["name"])]
        if startup_told.has_slurm(living[0][1]):
            self._side_by_side(names, cancelled, living)
        else:
            self._one_by_one(names, cancelled, living)
        self._keep()

    def _living(self) -> list[tuple[int, Resource]]:
        """The VMs that hear of jobs, with their ranks."""
        roster = vm_documents.seats(self._all.read("vms/roster.json"))
        ranks = {it["name"]: it["rank"] for it in roster}
        found = [
            (ranks[vm["name"]], vm)
            for _, vm in self._store.list(INSTANCE.stored)
            if vm["name"] in ranks
            and startup_told.shared_folder(vm) == (self._bucket, self._folder)
            and fleet.agent_works(self._store, vm, self._request.now)
            and any(
                buckets.may_read(
                    self._store,
                    self._bucket,
                    f"serviceAccount:{it['email']}",
                    f"{self._folder}/jobs/index.json",
                )
                for it in vm.get("serviceAccounts") or []
            )
        ]
        return sorted(found, key=lambda one: one[0])

    def _is_over(self, name: str) -> bool:
        return self._all.read(f"vms/jobs/{name}/course.json").get("state") in OVER

    # ------------------------------------------------------------------ one after the other

    def _one_by_one(
        self, names: Sequence[str], cancelled: set[str], living: list[tuple[int, Resource]]
    ) -> None:
        now = (self._kept["course"] or {}).get("name")
        for name in cancelled.intersection(names) - {now}:
            gone = self._all.new(name, _CANCELLED) | {"state": "cancelled"}
            self._all.write(f"vms/jobs/{name}/course.json", gone)
        left = [it for it in names if it not in cancelled or it == now]
        while (course := self._kept["course"] or self._next(left)) is not None:
            if course["name"] in self._others:
                break
            before = json.dumps(course)
            course = self._all.followed(course, living, cancelled=course["name"] in cancelled)
            is_over = course["state"] in OVER
            if is_over:
                left = [it for it in left if it != course["name"]]
                self._all.write(f"vms/jobs/{course['name']}/course.json", course)
            self._all.write("vms/job.json", course)
            self._kept["course"] = None if is_over else course
            if not is_over and json.dumps(course) == before:
                break

    def _next(self, names: Sequence[str]) -> Resource | None:
        return self._all.new(names[0], "the VMs get ready") if names else None

    # ------------------------------------------------------------------ side by side

    def _side_by_side(
        self, names: Sequence[str], cancelled: set[str], living: list[tuple[int, Resource]]
    ) -> None:
        specs = {name: self._all.read(f"jobs/{name}.json") for name in names}
        runs = [it for it in self._kept.get("runs", ()) if it["course"]["name"] in specs]
        known = {it["course"]["name"] for it in runs}
        for name in names:
            array = specs[name].get("array")
            own = range(array["first"], array["last"] + 1) if array else (None,)
            where = {"bucket": self._bucket, "folder": self._folder}
            new = self._all.new(name, "Slurm has not looked at it yet")
            runs += [where | {"index": it, "course": new} for it in own if name not in known]
        self._kept["runs"] = runs
        while self._passed(specs, cancelled, living):
            pass
        for name in names:
            own_runs = [it for it in runs if it["course"]["name"] == name]
            self._all.write(f"vms/jobs/{name}/course.json", self._course(own_runs))

    def _passed(
        self, specs: dict[str, Resource], cancelled: set[str], living: list[tuple[int, Resource]]
    ) -> bool:
        """Go through all jobs and tasks once; whether anything has changed."""
        runs = self._kept["runs"]
        going = [it for it in runs if it["course"]["state"] == "running"]
        in_use: Counter[str] = Counter()
        for it in going:
            in_use.update({node["instance_id"]: it["gpus"] for node in it["course"]["nodes"]})
        at_once = Counter(it["course"]["name"] for it in going)
        has_changed, stuck = False, set()
        usable = [it for it in living if self._takes_jobs(it[1])]
        for run in (it for it in runs if it["course"]["state"] not in OVER):
            course, name = run["course"], run["course"]["name"]
            is_running, spec = course["state"] == "running", specs[name]
            if name in self._others or (not is_running and name in stuck):
                continue
            run["gpus"] = spec.get("gpus") or _gpus(living[0][1])
            room = [it for it in usable if in_use[it[1]["id"]] + run["gpus"] <= _gpus(it[1])]
            room = [] if at_once[name] >= self._at_once(spec) else room
            there = living if is_running else room
            after = Run(self._request, self._store, run).followed(
                course, there, cancelled=name in cancelled
            )
            if after["state"] == "waiting" and len(usable) >= (spec.get("nodes") or len(living)):
                others = dict.fromkeys(it["course"]["name"] for it in going)
                why = f"it waits for GPUs of {', '.join(others)}" if others else after["why"]
                after["why"] = after["why"] if "begins again" in after["why"] else why
                stuck.add(name)
            run["course"] = after
            if after["state"] == "running" and not is_running:
                going.append(run)
                at_once[name] += 1
                in_use.update({node["instance_id"]: run["gpus"] for node in after["nodes"]})
            if json.dumps(after) != json.dumps(course):
                has_changed = has_changed or after["state"] != course["state"]
                events = self._kept.setdefault("events", {}).setdefault(name, [])
                events += after["events"][len(course["events"]) :]
                self._tell_of_task(run)
        return has_changed

    def _takes_jobs(self, vm: Resource) -> bool:
        """Whether Slurm has a VM, and has not drained it."""
        scene = vm_jobs.Scene(
            store=self._store,
            scenarios=self._request.scenarios,
            folder=f"{self._folder}/vms/",
            vms={vm["name"]: vm},
            now=self._request.now,
        )
        is_up = startup_told.has_done(vm, "slurm", self._request.now)
        return is_up and not vm_jobs.complaints(scene, vm["name"])

    def _at_once(self, spec: Resource) -> int:
        """How many tasks of a job run at a time, if there is room."""
        number = (spec.get("array") or {}).get("most") or len(self._kept["runs"])
        is_real = real_programs.SCENARIO in self._request.scenarios
        return min(number, real_programs.MOST) if is_real else number

    def _tell_of_task(self, run: Resource) -> None:
        """Write what the VM of a task says of it; nothing of a job without tasks."""
        course = run["course"]
        if run["index"] is None or not course["nodes"]:
            return
        failure, is_over = course["failure"] or {}, course["state"] != "running"
        code = failure.get("code") if failure else 0
        report = {
            "attempt": course["attempt"],
            "instance_id": course["nodes"][0]["instance_id"],
            "phase": "ended" if is_over else "running",
            "code": code if is_over else None,
            "why": course["why"] if course["state"] == "cancelled" else "",
            "told": course["state"] == "cancelled",
            "final": bool(failure.get("final")),
            "cause": failure.get("cause", ""),
            "tail": failure.get("tail", ""),
            "at": course["since"],
            "size": sum(run["written"]),
            "ran": run.get("ran") if is_over else None,
            "doubts": [],
        }
        self._all.write(f"vms/jobs/{course['name']}/nodes/task-{run['index']}.json", report)

    def _course(self, runs: Sequence[Resource]) -> Resource:
        """How far a job is: of tasks, by those of all."""
        courses: list[Resource] = [it["course"] for it in runs]
        first = courses[0]
        if runs[0]["index"] is None:
            return first | {"tasks": None}
        states = Counter(it["state"] for it in courses)
        is_over = not states["waiting"] + states["running"]
        began = [it["began"] for it in courses if it["began"] is not None]
        failed = [it for it in runs if it["course"]["failure"]]
        worst = min(failed, key=lambda it: float(it["course"]["since"]), default=None)
        ends = ("cancelled", "failed", "succeeded") if is_over else ("running",)
        state = next((it for it in ends if states[it]), "running" if began else "waiting")
        whys = [it["why"] for it in courses if it["state"] == state]
        return first | {
            "state": state,
            "why": next(filter(None, whys), "") if is_over or not began else "",
            "attempt": max(it["attempt"] for it in courses),
            "failures": sum(it["failures"] for it in courses),
            "nodes": [],
            "began": min(began, default=None),
            "ends": None,
            "failure": worst and worst["course"]["failure"] | {"rank": worst["index"]},
            "events": self._kept.get("events", {}).get(first["name"], []),
            "since": max(it["since"] for it in courses),
            "tasks": {it: states[it] for it in _STATES},
        }


def _gpus(vm: Resource) -> int:
    """How many jobs of one GPU a VM has room for; of one without GPUs, one in all."""
    return int(startup_told.gpu_check(vm).get("gpus") or 0) or 1
