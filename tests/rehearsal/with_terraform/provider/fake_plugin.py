"""A plugin with the true server and pretended resources, kept as files in the folder FAKE_CLOUD.

A name says what befalls the object: "slow-*" waits until Terraform stops the provider, "odd-*" is
refused in the plan, and "bug-*" meets a mistake in the code.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rehearsal.provider import schema
from rehearsal.provider.api import Api
from rehearsal.provider.plugin import serve
from rehearsal.provider.resource import UNKNOWN, PartialError, State
from rehearsal.provider.server import Implementations

CLOUD = Path(os.environ["FAKE_CLOUD"])
NETWORK = "google_compute_network"
EXAMPLES = {"string": "said-by-google", "number": 7, "bool": False}


def decided(field: schema.Field, value: Any) -> Any:
    """The value with everything unknown decided."""
    if value is UNKNOWN:
        if field.nesting or not isinstance(field.type, str):
            return {} if field.type[:1] == ["map"] else []
        return EXAMPLES[field.type]
    return value


class Fake:
    """A resource type whose objects are files."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {}

    def path(self, state: State) -> Path:
        return CLOUD / self.kind / f"{state['name']}.json"

    def customize(self, _api: Api, _prior: State | None, plan: State) -> State:
        if plan["name"].startswith("odd-"):
            raise ValueError("odd names are refused")
        return plan

    def create(self, api: Api, plan: State) -> State:
        name = plan["name"]
        if name.startswith("bug-"):
            raise KeyError("selfLink")
        state = {key: decided(f, plan[key]) for key, f in self.block.items()}
        state["id"] = state["self_link"] = f"{self.kind}/{name}"
        self.save(state)
        if name.startswith("slow-"):
            (CLOUD / "started").touch()
            api.cancel.wait(60)
            raise PartialError(state, RuntimeError("context has been cancelled"))
        return state

    @property
    def block(self) -> schema.Block:
        return schema.load("resources", self.kind).block

    def save(self, state: State) -> None:
        self.path(state).parent.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in state.items() if key != "timeouts"}
        self.path(state).write_text(json.dumps(kept))

    def read(self, _api: Api, state: State) -> State | None:
        if not self.path(state).exists():
            return None
        return cast("State", json.loads(self.path(state).read_text()))

    def update(self, _api: Api, prior: State, plan: State) -> State:
        state = {key: decided(f, plan[key]) for key, f in self.block.items()}
        self.save(prior | state)
        return state

    def delete(self, _api: Api, state: State) -> None:
        self.path(state).unlink(missing_ok=True)

    def import_state(self, _api: Api, import_id: str) -> State:
        raise ValueError(import_id)


class Project:
    """The data source google_project."""

    def read(self, api: Api, _config: State) -> State:
        return {"id": f"projects/{api.project}", "project_id": api.project}


def connect(block: Mapping[str, Any], _environ: Mapping[str, str]) -> Api:
    return cast("Api", SimpleNamespace(project=block["project"], cancel=threading.Event()))


if __name__ == "__main__":
    serve(lambda: Implementations({NETWORK: Fake(NETWORK)}, {"google_project": Project()}, connect))
