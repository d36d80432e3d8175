"""The root `mig` from nothing to nothing, in the simulated cloud."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests

from rehearsal import inventory, session
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database
from tests import attached
from tests.terraform.conftest import Terraform

BUCKETS = ("my-data", "my-state")
SOURCES = Path(__file__).parents[2] / "terraform"
GROUP = "module.gpu_mig.google_compute_instance_group_manager.gpu"
REQUEST = "module.gpu_mig.google_compute_resize_request.gpu"
SHARE = {"path": "/mnt/share", "tier": "BASIC_SSD", "size_gb": 2560, "location": "us-central1-a"}
SHARES = "module.filestore.google_filestore_instance.shares"
TEMPLATE = "module.gpu_mig.google_compute_instance_template.gpu"


def _example() -> str:
    """The variables that the root's README shows."""
    readme = (SOURCES / "mig/README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```hcl\n(.*?)```", readme, re.DOTALL)
    return str(example)


def _group(**changes: Any) -> dict[str, Any]:
    """The example's group, changed."""
    usual = {"instance_count": 2, "machine_type": "a2-highgpu-2g"}
    return {**usual, **changes}


@dataclass(frozen=True)
class Root:
    """A copy of the root `mig`, in front of its own cloud."""

    terraform: Terraform
    directory: str
    environment: Mapping[str, str]
    database: Path

    def not_attached(self) -> Root:
        """The same root, whose Terraform installs the provider and starts it itself."""
        alone = replace(self, environment={**self.environment, **attached.NOT_ATTACHED})
        alone._run("init", "-input=false", "-no-color")
        return alone

    def _run(self, *arguments: str, code: int = 0) -> str:
        done = self.terraform.run(self.directory, *arguments, also=self.environment)
        assert done.returncode == code, f"terraform {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def _settings(self, changes: Mapping[str, Any]) -> list[str]:
        """The example's variables and, as later files win, the changes."""
        folder = self.terraform.folder / self.directory
        (folder / "example.tfvars").write_text(_example(), encoding="utf-8")
        (folder / "changes.tfvars.json").write_text(json.dumps(changes), encoding="utf-8")
        return ["-var-file=example.tfvars", "-var-file=changes.tfvars.json"]

    def plan(self, *flags: str, **changes: Any) -> dict[str, str]:
        """What a plan would do to which address; the plan is kept for `apply`."""
        messages = map(json.loads, self._plan(changes, *flags, code=2).splitlines())
        planned = [message["change"] for message in messages if message["type"] == "planned_change"]
        return {change["resource"]["addr"]: change["action"] for change in planned}

    def stays(self, **changes: Any) -> None:
        """Make sure that a plan would change nothing, outputs included."""
        self._plan(changes, code=0)

    def _plan(self, changes: Mapping[str, Any], *flags: str, code: int) -> str:
        arguments = ("plan", "-detailed-exitcode", "-input=false", "-json", "-out=plan")
        return self._run(*arguments, *flags, *self._settings(changes), code=code)

    def planned(self, address: str) -> dict[str, Any]:
        """The values of a resource as the last plan knows them."""
        plan = json.loads(self._run("show", "-json", "plan"))
        (found,) = [change for change in plan["resource_changes"] if change["address"] == address]
        values: dict[str, Any] = found["change"]["after"]
        return values

    def apply(self) -> None:
        """Apply the last plan."""
        self._run("apply", "-input=false", "-no-color", "plan")

    def destroy(self, **changes: Any) -> None:
        """Remove everything."""
        arguments = ("destroy", "-auto-approve", "-input=false", "-no-color")
        self._run(*arguments, *self._settings(changes))

    def outputs(self) -> dict[str, Any]:
        """The root's outputs."""
        outputs = json.loads(self._run("output", "-json"))
        return {name: output["value"] for name, output in outputs.items()}

    def left(self) -> list[str]:
        """What exists in the cloud beside the buckets that were there before."""
        database = Database(self.database)
        try:
            with database.transaction() as store:
                found = list(inventory.resources(store, time.time()))
        finally:
            database.close()
        return [line for line in found if not inventory.stays(line)]


@pytest.fixture
def root(terraform: Terraform, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Root]:
    terraform.init("mig")
    directory = terraform.copy("mig", re.sub(r"\W+", "-", request.node.name))
    instant = {**terraform.environment, "CLOUD_CLOCK_RATE": "0"}
    database = tmp_path / "cloud.sqlite"
    with Cloud(database=database, environ=instant) as cloud:
        environment = session.environment(cloud.base_url, tmp_path, instant)
        for bucket in BUCKETS:
            requests.post(
                f"{cloud.base_url}/storage/v1/b",
                params={"project": "my-project"},
                json={
                    "name": bucket,
                    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
                },
                timeout=600,
            ).raise_for_status()
        with attached.served(environment) as reattach:
            yield Root(terraform, directory, environment | reattach, database)


@pytest.mark.parametrize(
    ("network_config", "resources"),
    [
        pytest.param(
            "default_network",
            10,
            marks=pytest.mark.slow(
                sibling="::test_a_cluster_is_made_stays_as_it_is_and_leaves_nothing"
            ),
        ),
        ("new_network", 16),
    ],
)
def test_a_cluster_is_made_stays_as_it_is_and_leaves_nothing(
    root: Root, network_config: str, resources: int
) -> None:
    plan = root.plan(network_config=network_config)
    assert list(plan.values()) == resources * ["create"]
    template = root.planned(TEMPLATE)["name"]
    root.apply()
    assert root.outputs()["group"]["instance_template"] == template

    root.stays(network_config=network_config)

    root.destroy(network_config=network_config)
    assert root.left() == []


def test_one_vm_is_five_lines(root: Root) -> None:
    least = "-var-file=../examples/l4-group/train.tfvars"
    root._run("plan", "-input=false", "-no-color", "-out=plan", least)

    template = root.planned(TEMPLATE)
    assert (template["machine_type"], template["labels"]) == (
        "g2-standard-8",
        {"aiinfra-cluster": "train"},
    )
    assert root.planned(GROUP)["target_size"] == 1


def test_changes_touch_what_they_must_and_nothing_else(root: Root) -> None:
    plan = functools.partial(root.plan, network_config="default_network")
    plan()
    root.apply()
    made = root.outputs()["group"]

    # Nobody else changes this cloud, so that reading it again would only take time.
    plan = functools.partial(plan, "-refresh=false")
    another_template = {GROUP: "update", TEMPLATE: "replace"}
    assert plan(group=_group(instance_count=3)) == {GROUP: "update"}
    assert plan(zone="us-central1-b") == {GROUP: "replace"}
    relabelled = {f'{SHARES}["/mnt/share"]': "update"}
    assert plan(labels={"team": "research"}) == another_template | relabelled
    larger = _group(machine_type="a2-highgpu-4g")
    assert plan(group=larger) == another_template
    root.apply()

    changed = root.outputs()["group"]
    assert changed["instance_template"] != made["instance_template"]
    assert changed["self_link"] == made["self_link"]
    root.stays(network_config="default_network", group=larger)


def test_a_flex_start_group_asks_for_vms_once_and_keeps_those_that_came(root: Root) -> None:
    flex = {
        "capacity": {"model": "flex_start", "max_run_seconds": 86400, "compact": False},
        "group": _group(machine_type="a3-highgpu-8g"),
        "filestores": [],
        "network_config": "default_network",
    }
    asked = {"train-1": {"count": 2, "run_seconds": 86400}}

    plan = root.plan(**flex, resize_requests=asked)
    assert plan[f'{REQUEST}["train-1"]'] == "create"
    root.apply()
    root.stays(**flex, resize_requests=asked)

    more = asked | {"train-2": {"count": 1, "run_seconds": 86400}}
    assert root.plan(**flex, resize_requests=more) == {f'{REQUEST}["train-2"]': "create"}
    root.apply()
    root.stays(**flex, resize_requests=more)

    root.destroy(**flex, resize_requests=more)
    assert root.left() == []


@pytest.mark.slow(sibling="::test_changes_touch_what_they_must_and_nothing_else")
def test_files_shares_and_a_ray_cluster_leave_nothing(root: Root) -> None:
    root = root.not_attached()
    (root.terraform.folder / root.directory / "files.tar.gz").write_bytes(b"files")
    everything = {
        "capacity": {"model": "reservation", "reservation": "mine", "compact": True},
        "files": {"archive": "files.tar.gz", "sha256": hashlib.sha256(b"files").hexdigest()},
        "gcs_mounts": [{"bucket": name, "path": f"/mnt/{name}"} for name in BUCKETS],
        "network_config": "default_network",
        "startup": {
            "files_destination": "/usr/aiinfra/copy",
            "notebook": False,
            "ops_agent": False,
            "ray": {"version": "2.60.0"},
        },
    }

    root.plan(**everything)
    root.apply()
    (share,) = root.outputs()["filestores"]
    assert share["ip"]
    root.stays(**everything)

    larger = [{**SHARE, "size_gb": 3072}]
    assert list(root.plan(**everything, filestores=larger).values()) == ["update"]
    moved = [{**SHARE, "path": "/mnt/other"}]
    assert root.plan(**everything, filestores=moved)[TEMPLATE] == "replace"

    root.destroy(**everything)
    assert root.left() == []
