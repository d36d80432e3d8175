"""Terraform's state of a rehearsed cluster, as something that a killed run never finished."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from google.cloud import storage
from google.oauth2.credentials import Credentials

if TYPE_CHECKING:
    from tests.runs.conftest import Rehearsal

STATE = "np-deployment/terraform/state/default.tfstate"
LOCK = "np-deployment/terraform/state/default.tflock"


@contextlib.contextmanager
def client(rehearsal: Rehearsal) -> Iterator[storage.Client]:
    """Cloud Storage of a rehearsal."""
    endpoint = rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"].removesuffix("/storage/v1/")
    made = storage.Client(
        "my-project", Credentials("test"), client_options={"api_endpoint": endpoint}
    )
    yield made
    made.close()


@contextlib.contextmanager
def blob(rehearsal: Rehearsal, name: str) -> Iterator[storage.Blob]:
    """An object of the default bucket."""
    with client(rehearsal) as made:
        yield made.bucket("aiinfra-terraform-my-project").blob(name)


def resources(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    """The resources that the state has."""
    found: list[dict[str, Any]] = _read(rehearsal)["resources"]
    return found


def outputs(rehearsal: Rehearsal) -> dict[str, Any]:
    """The values of the root's outputs."""
    return {name: it["value"] for name, it in _read(rehearsal)["outputs"].items()}


def forget(rehearsal: Rehearsal, is_lost: Callable[[dict[str, Any]], bool]) -> None:
    """Make the state forget resources, as a killed run's does that never wrote them down."""
    write(rehearsal, [it for it in resources(rehearsal) if not is_lost(it)])


def write(rehearsal: Rehearsal, present: list[dict[str, Any]], *, without: str = "") -> None:
    """Make the state have these resources, and all outputs but one."""
    state = _read(rehearsal)
    state["resources"] = present
    state["outputs"].pop(without, None)
    state["serial"] += 1
    with blob(rehearsal, STATE) as kept:
        kept.upload_from_string(json.dumps(state))


def hold_lock(rehearsal: Rehearsal) -> None:
    """Take the lock in the name of somebody else."""
    with blob(rehearsal, LOCK) as lock:
        lock.upload_from_string(json.dumps({"Who": "ann@laptop", "Created": "2026-11-21"}))


def _read(rehearsal: Rehearsal) -> dict[str, Any]:
    with blob(rehearsal, STATE) as kept:
        state: dict[str, Any] = json.loads(kept.download_as_bytes())
        return state
