"""Whoever may write to the bucket, in each object and before each action: nobody else is harmed."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from tests import stored
from tests.runs import state_file
from tests.runs.job_lines import GKE, TWO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.runs.conftest import Ended, Rehearsal

ACTIONS: Final = ("Status", "Plan", "Create", "Run", "Jobs", "Logs", "Destroy")
PATH: Final = "projects/my-project/locations/us-central1-a/instances/victim-share"
NAMES: Final = ("victim-data", "/instances/victim-share", "firewalls/default-allow-ssh")
"""What belongs to others."""


class Thing(NamedTuple):
    """An object, and what somebody has written there."""

    name: str  # as in `Stored`
    change: dict[str, Any] | None = None  # on top of a stranger's host for each text that is there
    parts: tuple[str, ...] = ()
    only: str = ""  # the one field of it in which texts are changed; "" for all


VICTIM: Final = {
    "mode": "managed",
    "type": "google_storage_bucket",
    "name": "x",
    "provider": 'provider["registry.terraform.io/hashicorp/google"]',
    "instances": [
        {"schema_version": 0, "attributes": {"id": "victim-data", "name": "victim-data"}}
    ],
}
LOCK: Final = {"ID": "1", "Who": "", "Created": ""}
ENDPOINT: Final = {"endpoint": ""}
TRACES: Final = {"networks": [], "stems": [], "volumes": {PATH: "Delete"}}
COURSE: Final = {"name": "train-1", "state": "failed", "why": "", "events": [""]}
DONE: Final = {"at": "", "action": "", "version": "", "who": "", "ended": "", "hourly": ""}
OF_THE_PROGRAM: Final = (
    Thing("history.json", {"lines": [DONE]}),
    Thing("runs/{}.json", {"alive": "/etc/passwd", "lock_id": "1"}, ("x",)),
    Thing("connection.json"),
    Thing("prices.json", {"sources": {"a": {"text": "", "date": ""}}, "prices": []}),
    Thing("jobs/{}.json", {"files": "", "image": ""}, ("train-1",)),
    Thing("jobs/index.json", {"jobs": [{"name": "", "cancelled": ""}]}),
)
OF_VMS: Final = (
    Thing("vms/group.json", {"instance_count": ""}),
    Thing("vms/idle.json", {"at": ""}),
    Thing("vms/job.json", COURSE),
    Thing("vms/jobs/{}/course.json", COURSE, ("train-1",)),
    Thing("vms/members/{}.json", {"name": ""}, ("x",)),
    Thing("vms/results/{}/{}.json", {"state": ""}, ("x", "x")),
    Thing("vms/roster.json", {"members": [{"name": "", "rank": 0, "account": ""}]}),
    Thing("vms/jobs/{}/nodes/task-{}.json", {"instance_id": ""}, ("train-1", "0")),
    Thing("vms/slurm/jobs.json", {"jobs": [{"name": "x", "state": "RUNNING", "user": ""}]}),
    Thing("ray/jobs.json", {"jobs": [{"name": "x", "state": "RUNNING", "since": ""}]}),
    Thing("vms/slurm/nodes.json", {"at": 1.0, "head": "x", "nodes": [{"name": "", "state": ""}]}),
)
OF_PODS: Final = (
    Thing("jobs/cancelled/{}", None, ("train-1",)),
    Thing("pods/jobs/{}/began.json", {"began": "", "why": ""}, ("train-1",)),
    Thing("pods/jobs/{}/attempts/{}", None, ("train-1", "1")),
    Thing("pods/jobs/{}/ends/{}/{}.json", {"vm": ""}, ("train-1", "1", "0")),
    Thing("{}/jobs/{}/logs/{}/{}/{}", None, ("pods", "train-1", "1", "0", "0" * 15)),
)
ROWS: Final = {
    "record": (TWO, (Thing("deployment.json"),), "0 0 0 0 0 0 0"),
    "state": (TWO, (Thing("terraform/state/default.tfstate"),), "5 5 5 5 5 5 5"),
    "lock": (TWO, (Thing("terraform/state/default.tflock", LOCK),), "0 0 5 0 0 0 5"),
    "program": (TWO, OF_THE_PROGRAM, "0 0 0 0 0 0 0"),
    "VMs": (TWO, OF_VMS, "0 0 0 0 0 0 0"),
    "settings": (GKE, (Thing("deployment.json", only="settings"),), "0 0 0 0 0 0 0"),
    "facts": (GKE, (Thing("cluster.json"),), "5 0 0 5 5 5 0"),
    "endpoint": (GKE, (Thing("cluster.json", ENDPOINT, only="endpoint"),), "0 0 0 0 0 0 0"),
    "traces": (GKE, (Thing("leftovers.json", TRACES),), "0 0 0 0 0 0 8"),
    "pods": (GKE, OF_PODS, "0 0 0 0 0 0 0"),
}
"""What is changed, and with what codes `ACTIONS` end then."""


@contextlib.contextmanager
def _stranger() -> Iterator[tuple[str, list[str]]]:
    """A host that is nobody's, and who has come to it."""
    came: list[str] = []
    with socket.create_server(("127.0.0.2", 0)) as server:

        def wait() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, address = server.accept()
                    came.append(str(address))
                    connection.close()

        threading.Thread(target=wait, daemon=True).start()
        yield f"127.0.0.2:{server.getsockname()[1]}", came


def _hostile(value: Any, host: str) -> Any:
    """The document with a stranger's host for each text."""
    match value:
        case dict():
            return {key: _hostile(it, host) for key, it in value.items()}
        case list():
            return [_hostile(it, host) for it in value]
        case str():
            return f"https://{host}/x"
        case _:
            return value


def _tamper(rehearsal: Rehearsal, thing: Thing, host: str) -> None:
    place = f"np-deployment/{stored.found()[thing.name].at(*thing.parts)}"
    with state_file.blob(rehearsal, place) as kept:
        text = kept.download_as_bytes() if kept.exists() else b"{}"
        whole = json.loads(text) if text.startswith(b"{") else {}
        if thing.name.endswith("tfstate"):
            whole["resources"] = [*whole.get("resources", []), VICTIM]
        else:
            told = {"x": "", **whole, **(thing.change or {})}
            left = {"made_by", "volumes"} if not thing.only else told.keys() - {thing.only}
            whole = {key: it if key in left else _hostile(it, host) for key, it in told.items()}
        kept.upload_from_string(json.dumps(whole))


def _act(rehearsal: Rehearsal, action: str) -> Ended:
    empty = rehearsal.folder / "empty"
    empty.mkdir(exist_ok=True)
    match action:
        case "Run":
            started = rehearsal.start(
                "Run", f"--copy={empty}", "--detach", "--name=train", behind=["--", "true"]
            )
            return rehearsal.finish(started)
        case "Logs":
            return rehearsal.run("Logs", behind=["train-1"])
        case "Create" | "Destroy":
            return rehearsal.run(action, "--yes")
        case _:
            return rehearsal.run(action)


def _victims(rehearsal: Rehearsal) -> list[str]:
    return [line for line in rehearsal.resources() if any(it in line for it in NAMES)]


def test_each_object_is_tampered_with() -> None:
    changed = {thing.name for _, things, _ in ROWS.values() for thing in things}
    assert changed == stored.found().keys() - {"{}", "logs/{}.log"}


@pytest.mark.slow(
    sibling="tests/runs/test_hostile_documents.py"
    "::test_a_state_that_names_what_no_root_has_is_refused"
)
@pytest.mark.parametrize("name", ROWS)
def test_whatever_stands_in_an_object_no_token_goes_elsewhere_and_others_keep_all(
    standing: Callable[..., Rehearsal], name: str
) -> None:
    settings, things, codes = ROWS[name]
    rehearsal = standing(settings)
    rehearsal.settings |= settings
    with state_file.client(rehearsal) as client:
        client.create_bucket("victim-data").blob("model").upload_from_string("weights")
    share = {
        "tier": "BASIC_HDD",
        "fileShares": [{"name": "data", "capacityGb": "1024"}],
        "networks": [{"network": "default", "modes": ["MODE_IPV4"]}],
    }
    place, _, instance = PATH.rpartition("/")
    rehearsal.google("POST", f"file/v1/{place}?instanceId={instance}", share)
    submitted = _act(rehearsal, "Run")
    assert submitted.code == 0, submitted.said
    before = _victims(rehearsal)
    assert len(before) >= len(NAMES)
    found = []
    with _stranger() as (host, came):
        for action in ACTIONS:
            for thing in things:
                _tamper(rehearsal, thing, host)
            ended = _act(rehearsal, action)
            found.append(str(ended.code))
            print(action, ended.code, [it["what"] for it in ended.document["problems"]])  # noqa: T201 - shown if it fails
            assert not came, ended.said
            assert _victims(rehearsal) == before, ended.said
    assert " ".join(found) == codes
