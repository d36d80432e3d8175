"""A simulated cloud whose requests are counted, and the program in front of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import requests

from rehearsal import inventory, session
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.wire import Reply, Request
from rehearsal.provider import given
from tests import output_schema, real_provider
from tests.chaos import processes
from tests.chaos.cases import CHANGED, HERE, LOST_STATE, ZONES, Blow
from tests.runs.conftest import Rehearsal

if TYPE_CHECKING:
    from tests.chaos.cases import Case
    from tests.chaos.processes import Role
    from tests.forked import Started

COUNT: Final = 2
"""INSTANCE_COUNT."""
_AT_MOST: Final = real_provider.seconds(600.0)
"""Seconds after which a run counts as hung."""
_GRACE: Final = real_provider.seconds(300.0)
"""Seconds in which what a kill has left over ends by itself."""
_PASSED_ON: Final = ("PATH", "HOME", given.VARIABLE)
_BETWEEN: Final = 0.1
"""Seconds between two signals."""
_BUCKET: Final = "aiinfra-terraform-my-project"
_STATE: Final = "np-deployment%2Fterraform%2Fstate%2Fdefault.tfstate"
_STATE_VERSION: Final = 4
# What Google draws: the end of a VM's name, and the whole of a dashboard's.
_RANDOM: Final = re.compile(r"(?<=\bnp-vm-)\w{4}\b|(?<=/dashboards/)[\w-]{36}$")


class WatchedCloud(Cloud):
    """A cloud that counts requests, and tells of each before it is served."""

    def __init__(self, *, database: Path, rate: str) -> None:
        super().__init__(database=database, environ={"CLOUD_CLOCK_RATE": rate})
        self._count = 0
        self._counting = threading.Lock()
        self.watcher: Callable[[int, Request], None] | None = None

    def answer(self, request: Request) -> Reply | None:
        """Count the request, tell of it, serve it."""
        with self._counting:
            self._count += 1
            if self.watcher is not None:
                self.watcher(self._count, request)
        return super().answer(request)

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Requests wait meanwhile; they are counted anew from here on."""
        with self._counting:
            self._count = 0
            yield


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    action: str
    code: int | None  # the exit code; -9 after SIGKILL, None when it had to be ended by force
    document: dict[str, Any]  # the JSON document; {} when there was none
    said: str  # what it wrote to stderr

    @property
    def fixes(self) -> str:
        """What the run says that mends its problems."""
        return "\n".join(problem["fix"] for problem in self.document.get("problems", []))

    @property
    def last_words(self) -> str:
        """The problems, or the last line of what was said; in one line."""
        problems = self.document.get("problems") or [{"what": self.said.strip()[-200:], "why": ""}]
        words = "; ".join(f"{problem['what']} ({problem['why']})" for problem in problems)
        return " ".join(words.split())


class World:
    """One cloud, from `with` to its end, and the program that works on it."""

    def __init__(self, folder: Path, rate: str, network: str, zone: str = HERE) -> None:
        self._folder = folder
        self._cloud = WatchedCloud(database=folder / session.DATABASE, rate=rate)
        self._mark = f"{session.FOLDER_VARIABLE}={folder}"
        self._network = network
        self._zone = zone
        self._rate = rate

    def __enter__(self) -> Self:
        self._cloud.__enter__()
        temporary = self._folder / "tmp"
        temporary.mkdir(exist_ok=True)
        base = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "TMPDIR": str(temporary),
            "CLOUD_CLOCK_RATE": self._rate,
        }
        environ = session.environment(self._cloud.base_url, self._folder, base)
        self._rehearsal = Rehearsal(
            self._folder, environ, self._folder / "requests.jsonl", cloud=self._cloud
        )
        for zone in ZONES.values():
            self._rehearsal.settings |= _placed(self._network, zone)
            self._rehearsal.presume()
        if "," in self._zone:
            self._rehearsal.stock({"zones": HERE, "machines": 0})
        return self

    def __exit__(self, *_: object) -> None:
        self._cloud.__exit__(None, None, None)

    def run(self, action: str, *options: str) -> Ended:
        """Run the program undisturbed."""
        return self._finish(action, self._start(action, *options))

    def profile(self, action: str) -> tuple[Ended, list[frozenset[Role]]]:
        """Run the program undisturbed; for each request, who was alive when it came."""
        alive: list[frozenset[Role]] = []
        with self._cloud.held_back():
            tool = self._start(action)
            self._cloud.watcher = lambda *_: alive.append(frozenset(self.alive(tool).values()))
        return self._finish(action, tool), alive

    def strike(self, case: Case) -> tuple[list[Ended], bool]:
        """Run the case's action and let the blow fall.

        Returns how it ended, and what another machine did meanwhile; whether the moment came.
        """
        action = case.scene.action
        with self._cloud.held_back():
            if case.blow is Blow.KILL_STALE:
                self._cloud.faults.add(LOST_STATE)
            tool = self._start(action)
            striker = _Striker(case, tool, self)
            self._cloud.watcher = striker
        ended = [self._finish(action, tool)]
        self._cloud.faults.end()
        if striker.second is not None:
            ended.append(self._finish(case.blow.second, striker.second))
        return ended, striker.has_struck

    def begin(self, fault: str) -> None:
        """Let something go wrong from now on between the run that is under way and the cloud."""
        self._cloud.faults.add(fault)

    def left_processes(self) -> list[str]:
        """Which processes of ended runs still live, after some seconds in which they may end."""
        deadline = time.monotonic() + _GRACE
        while (left := processes.of_run(self._mark, 0)) and time.monotonic() < deadline:
            time.sleep(0.05)
        processes.kill(left)
        return [f"{role.value} {pid}" for pid, role in left.items()]

    def resources(self) -> Counter[str]:
        """What the cloud holds, but what every Destroy leaves."""
        lines = [line for line in self._rehearsal.resources() if not _stays(line)]
        return Counter(_RANDOM.sub("*", line) for line in lines)

    def unreachable(self) -> list[str]:
        """What VMs that run lack to be reached."""
        return self._rehearsal.unreachable()

    def knows_group(self) -> bool:
        """Whether the state has a group of VMs."""
        url = self._rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
        answer = requests.get(f"{url}b/{_BUCKET}/o/{_STATE}", {"alt": "media"}, timeout=600)
        return "google_compute_instance_group_manager" in answer.text

    def state_fault(self) -> str:
        """Why the Terraform state can't be read; "" when it can, or when there is none."""
        url = self._rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
        answer = requests.get(f"{url}b/{_BUCKET}/o/{_STATE}", {"alt": "media"}, timeout=600)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return ""
        try:
            document = answer.json()
            return "" if document["version"] == _STATE_VERSION else f"its version is {document}"
        except (ValueError, LookupError, TypeError) as error:
            return f"{error!r} in {answer.text[:200]!r}"

    def lose_record(self) -> None:
        """Delete `deployment.json`, if it is there."""
        url = self._rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
        path = f"{url}b/{_BUCKET}/o/np-deployment%2Fdeployment.json"
        requests.delete(path, headers={"Authorization": "Bearer test"}, timeout=600)

    def run_second(self, action: str) -> tuple[Ended, int]:
        """Run an action for a second state with the same prefix, in a bucket of its own."""
        url = self._rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]
        requests.post(
            f"{url}b",
            params={"project": "my-project"},
            json={"name": "second-state"},
            headers={"Authorization": "Bearer test"},
            timeout=600,
        )
        since = len(self._rehearsal.requests())
        ended = self._finish(action, self._start(action, TERRAFORM_GCS_PATH="gs://second-state"))
        writes = self._rehearsal.writes(since)
        return ended, sum(request["method"] == "DELETE" for request in writes)

    def alive(self, tool: Started) -> dict[int, Role]:
        """The processes of a run, and of what runs beside it."""
        return processes.of_run(self._mark, tool.pid)

    def start_elsewhere(self, action: str) -> Started:
        """Let another machine start an action; a move goes to where that goes."""
        zone = self._zone if action == "Destroy" else ZONES[action]
        return self._start(action, "--yes", rehearsal=self._rehearsal.elsewhere(), ZONE=zone)

    def _start(
        self, action: str, *options: str, rehearsal: Rehearsal | None = None, **settings: str
    ) -> Started:
        if action.startswith("Move"):
            action, options = "Create", ("--yes", *options)
        if action == "Change":
            action, settings = "Create", {**settings, **CHANGED}
        if action == "GoOn":
            action = "Create"
        zone = settings.get("ZONE", self._zone)
        values = _placed(self._network, zone) | {"INSTANCE_COUNT": str(COUNT)}
        return (rehearsal or self._rehearsal).start(action, *options, **(values | settings))

    def _finish(self, action: str, tool: Started) -> Ended:
        try:
            code: int | None = tool.ended(_AT_MOST)
        except TimeoutError:
            tool.send_signal(signal.SIGKILL)
            tool.ended(_AT_MOST)
            code = None
        self._cloud.watcher = None
        out = self._rehearsal.result(tool)
        document = json.loads(out) if out else {}
        if document:
            output_schema.require(document)
        return Ended(action, code, document, self._rehearsal.said(tool))


class _Striker:
    """Lets a case's blow fall, once, when its moment has come and its targets are there."""

    def __init__(self, case: Case, tool: Started, world: World) -> None:
        self._case = case
        self._tool = tool
        self._world = world
        self.has_struck = False
        self.second: Started | None = None

    def __call__(self, number: int, request: Request) -> None:
        blow = self._case.blow
        if self.has_struck or not self._case.is_due(number, request):
            return
        if blow.fault:
            self._world.begin(blow.fault)
        elif blow.second:
            self.second = self._world.start_elsewhere(blow.second)
        else:
            self._hit()
            return
        self.has_struck = True

    def _hit(self) -> None:
        blow = self._case.blow
        alive = self._world.alive(self._tool)
        targets = [pid for pid, role in alive.items() if role in blow.roles]
        if not targets:
            return
        self.has_struck = True
        for pid in targets:
            os.kill(pid, blow.signum)
        if blow.is_repeated:
            threading.Timer(_BETWEEN, self._tool.send_signal, [blow.signum]).start()


def _placed(network: str, zone: str) -> dict[str, str]:
    """The settings of network and zone; each region has a network of the host project."""
    settings = {"NETWORK_CONFIG": network, "ZONE": zone}
    if network != "existing":
        return settings
    region = zone.partition(",")[0].rpartition("-")[0]
    path = f"projects/my-host/global/networks/{region}-vpc"
    return settings | {"NETWORK": path, "SUBNETWORK": "gpu-vms", "MAKE_FIREWALL": "yes"}


def _stays(line: str) -> bool:
    """Whether it is about what a Destroy leaves, or what the host project has of its own."""
    of_host = "projects/my-host/" in line and not line.startswith("compute/firewalls")
    return inventory.stays(line) or of_host
