"""The program as its users start it, against a simulated cloud of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from rehearsal import inventory, session
from rehearsal.cloud.compute import stock
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database
from rehearsal.presumption import named, things
from tests import attached, forked, output_schema, real_provider
from tests.chaos import processes
from tests.forked import Process, Started
from tests.runs import reachable

PROGRAM = [sys.executable, str(Path(__file__).parents[2] / "entrypoint.py")]
# In namespaces of its own, by which a run can't tell whether another machine's lives.
_ELSEWHERE = ["unshare", "--user", "--map-root-user", "--uts", "--mount", "sh", "-c"]
_ELSEWHERE += ['hostname elsewhere && exec "$@"', "sh"]
# A traceback of the program's own, in rich's box or bare; VMs tell of theirs further to the right.
_CRASH = re.compile(r"^(?:╭─+ )?Traceback", re.MULTILINE)
_READS = (":getIamPolicy", "testIamPermissions", "/listManagedInstances")
"""Ends of paths that are read by POST."""
MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    code: int
    document: dict[str, Any]
    said: str

    @property
    def problem(self) -> dict[str, Any]:
        """The only problem."""
        (problem,) = self.document["problems"]
        assert isinstance(problem, dict)
        return problem


@dataclass
class Rehearsal:
    """A simulated cloud and the program in an environment that leads to it."""

    folder: Path  # keeps the cloud and all files
    environ: dict[str, str]  # the program's; may be changed between runs
    log: Path  # the cloud's log of requests
    forked: bool = False  # whether the program is forked, not started by Python
    cloud: Cloud | None = None  # the cloud; None where it is a process of its own
    # those of each run, unless it says otherwise
    settings: dict[str, str] = field(default_factory=lambda: dict(MANDATORY))
    # what starts the program, with its command behind it; nothing for this machine
    machine: Sequence[str] = ()
    _files: dict[int, tuple[Path, Path]] = field(default_factory=dict)

    def elsewhere(self) -> Rehearsal:
        """The program on another machine, which reaches the same cloud; Linux only."""
        return replace(self, forked=False, machine=_ELSEWHERE)

    def start(
        self, action: str, *options: str, behind: Sequence[str] = (), **settings: str
    ) -> Started:
        """Start the program with these settings on top of the mandatory ones.

        `settings`: setting -> value.
        """
        values = self.settings | settings
        # Several may be under way at the same time.
        where = "-elsewhere" if self.machine else ""
        env_list = self.folder / f"{action}-{values.get('NAME_PREFIX', '')}{where}.list"
        env_list.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        # Files, as nobody reads what is said before the end, and a full pipe would stop it.
        place = Path(tempfile.mkdtemp(dir=self.folder, prefix="said-"))
        out, err = place / "out", place / "err"
        argv = ["--env-file", str(env_list), "--output", "json", *options, action, *behind]
        started: Started
        if self.forked:
            started = forked.start(argv, self.environ, out, err)
        else:
            with out.open("wb") as result, err.open("wb") as said:
                process = subprocess.Popen(
                    [*self.machine, *PROGRAM, *argv],
                    env=self.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=result,
                    stderr=said,
                )
            started = Process(process)
        self._files[started.pid] = out, err
        return started

    def finish(self, started: Started) -> Ended:
        """Wait for a started program."""
        code = started.ended(real_provider.seconds(600))
        err = self.said(started)
        assert not _CRASH.search(err), err
        document = json.loads(self.result(started))
        assert document["exit_code"] == code
        output_schema.require(document)
        output_schema.require_exit_code(document)
        return Ended(code, document, err)

    def said(self, started: Started) -> str:
        """What a started program has written to stderr so far."""
        err = self._files[started.pid][1]
        return err.read_text(encoding="utf-8") if err.exists() else ""  # a fork makes it itself

    def result(self, started: Started) -> str:
        """What a program that has ended has written to stdout."""
        return self._files[started.pid][0].read_text(encoding="utf-8")

    def run(self, action: str, *options: str, behind: Sequence[str] = (), **settings: str) -> Ended:
        """Run the program to its end; the arguments are those of `start`."""
        return self.finish(self.start(action, *options, behind=behind, **settings))

    def reserve(self, name: str, machine: str, count: int, zone: str, **more: Any) -> None:
        """Make a reservation in the project, as its owner does it: by Google's own API."""
        properties = {"machineType": machine}
        body = {
            "name": name,
            "specificReservation": {"count": str(count), "instanceProperties": properties},
            "specificReservationRequired": True,
            **more,
        }
        place = f"projects/{self.settings['PROJECT_ID']}/zones/{zone}"
        self.google("POST", f"compute/v1/{place}/reservations", body)

    def stock(self, *rows: Mapping[str, Any]) -> None:
        """Say what zones have left (`rehearsal.cloud.compute.stock`), in place of what was said."""
        database = Database(self.folder / session.DATABASE)
        with contextlib.closing(database), database.transaction() as store:
            stock.put(store, map(dict, rows))

    def presume(self) -> tuple[str, ...]:
        """Make what the settings name, as `--rehearse` does; what that is."""
        assert self.cloud is not None
        wanted = named.of(self.settings)
        return things.make(self.cloud.arrange, wanted, missing=False).there

    def resources(self) -> list[str]:
        """What the cloud holds, a line each."""
        database = Database(self.folder / session.DATABASE)
        try:
            with database.transaction() as store:
                return list(inventory.resources(store, time.time()))
        finally:
            database.close()

    def unreachable(self) -> list[str]:
        """What VMs that run lack to be reached."""
        database = Database(self.folder / session.DATABASE)
        with contextlib.closing(database), database.transaction() as store:
            return list(reachable.lacking(store, time.time()))

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change the text of everything that the cloud remembers, but for objects' contents."""
        database = Database(self.folder / session.DATABASE)
        try:
            with database.transaction() as store:
                for collection in store.collections():
                    for name, document in list(store.list(collection)):
                        changed = json.loads(change(json.dumps(document)))
                        if change(name) != name:
                            store.delete(collection, name)
                        store.put(collection, change(name), changed)
        finally:
            database.close()

    def google(self, method: str, path: str, body: Any = None) -> Any:
        """Do something behind the program's back; `path` is below the cloud's own address."""
        base = self.environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"].removesuffix("compute/v1/")
        answer = requests.request(
            method, base + path, json=body, headers={"Authorization": "Bearer test"}, timeout=60
        )
        answer.raise_for_status()
        return answer.json()

    def objects(self) -> set[str]:
        """The names of the objects in the default bucket."""
        return {line.rpartition(" ")[2] for line in self.resources() if "object" in line}

    def object(self, name: str) -> dict[str, Any]:
        """A document of the state folder."""
        (path,) = [it for it in self.objects() if it.endswith(f"-deployment/{name}")]
        bucket, _, whole = path.removeprefix("b/").partition("/o/")
        path = quote(whole, safe="")
        found = self.google("GET", f"storage/v1/b/{bucket}/o/{path}?alt=media")
        assert isinstance(found, dict)
        return found

    def requests(self) -> list[dict[str, Any]]:
        """What the cloud was asked so far."""
        return [json.loads(line) for line in self._told()]

    def _told(self) -> list[bytes]:
        """The lines of the cloud's log, without one that is being written."""
        log = self.log.read_bytes() if self.log.exists() else b""
        return log[: log.rfind(b"\n") + 1].splitlines()

    def writes(self, since: int = 0) -> list[dict[str, Any]]:
        """The requests, from a number on, that change something in the cloud."""
        return [
            request
            for request in self.requests()[since:]
            if request["method"] not in ("GET", "HEAD") and not request["path"].endswith(_READS)
        ]

    def kill(self, started: Started) -> None:
        """Kill a run and all that it has started."""
        started.send_signal(signal.SIGKILL)
        mark = f"{session.FOLDER_VARIABLE}={self.folder}"
        deadline = time.monotonic() + real_provider.seconds(600)
        while present := processes.of_run(mark, started.pid):
            assert time.monotonic() < deadline
            processes.kill(present)
            time.sleep(0.05)
        started.ended(real_provider.seconds(600))

    def when_asked(self, method: str, part: str) -> None:
        """Wait until the cloud has had such a request."""
        deadline = time.monotonic() + real_provider.seconds(600)
        read = 0
        while time.monotonic() < deadline:
            # Only what is new: the cloud serves in this very process.
            told = self._told()[read:]
            read += len(told)
            requests = map(json.loads, told)
            if any(r["method"] == method and part in r["path"] for r in requests):
                return
            time.sleep(0.05)
        raise AssertionError(f"no {method} of {part} within ten minutes")


def _scrubbed() -> dict[str, str]:
    own = ("PROJECT_ID", "NAME_PREFIX", "ZONE", "REGION", "ACTION")
    return {name: value for name, value in os.environ.items() if name not in own}


@contextlib.contextmanager
def rehearsed(
    folder: Path,
    *,
    rate: float = 0,
    scenario: str = "",
    environ: Mapping[str, str] | None = None,
    real: bool = False,
) -> Iterator[Rehearsal]:
    """A rehearsal whose cloud is kept in a folder and served for as long as it is needed.

    `real`: whether every process is started as for a user. Else the program is forked, and the
    provider is served from here, which takes a third of the time. A provider from outside is always
    started by Terraform.
    """
    base = _scrubbed() | {"CLOUD_CLOCK_RATE": str(rate)} | dict(environ or {})
    log = folder / "requests.jsonl"
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(
            Cloud(database=folder / session.DATABASE, environ=base, scenario=scenario, log=log)
        )
        environment = session.environment(cloud.base_url, folder, base)
        rehearsal = Rehearsal(folder, environment, log, not real, cloud)
        if not real and not real_provider.in_use():
            stack.enter_context(attached.on_path(folder / "attached", rehearsal.environ))
        yield rehearsal


Rehearse = Callable[..., Rehearsal]
"""Makes a rehearsal of settings."""


@pytest.fixture
def rehearse(tmp_path: Path) -> Iterator[Rehearse]:
    """Make a rehearsal with a clock rate and a scenario; its cloud ends with the test."""
    with contextlib.ExitStack() as clouds:
        yield lambda **how: clouds.enter_context(rehearsed(tmp_path, **how))


@dataclass(frozen=True)
class Standing:
    """A cloud in which a Create has ended well."""

    database: Path
    created: Ended  # how the Create ended


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mapping[str, str]], Standing]:
    """Make a cluster with settings on top of the mandatory ones, or find the one of before."""
    made: dict[frozenset[tuple[str, str]], Standing] = {}

    def make(settings: Mapping[str, str]) -> Standing:
        key = frozenset(settings.items())
        if key not in made:
            folder = tmp_path_factory.mktemp("standing")
            with rehearsed(folder) as rehearsal:
                created = rehearsal.run("Create", **settings)
            assert created.code == 0, created.said
            made[key] = Standing(folder / session.DATABASE, created)
        return made[key]

    return make


@pytest.fixture
def standing(
    made_once: Callable[[Mapping[str, str]], Standing], rehearse: Rehearse, tmp_path: Path
) -> Rehearse:
    """Make a rehearsal with a copy of a cloud in which a Create with these settings has ended.

    For a test that takes a cluster for granted: making it costs more than all else in the test.
    """

    def make(settings: Mapping[str, str] | None = None, **how: Any) -> Rehearsal:
        shutil.copy(made_once(settings or {}).database, tmp_path / session.DATABASE)
        return rehearse(**how)

    return make


@pytest.fixture
def goldens() -> Path:
    """Where the goldens of scenarios are."""
    return Path(__file__).parents[1] / "golden" / "scenarios"


@pytest.fixture
def rehearsal(rehearse: Rehearse) -> Rehearsal:
    """A rehearsal in which everything is done at once."""
    return rehearse()
