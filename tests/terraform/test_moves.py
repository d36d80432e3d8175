"""Another zone, region, machine or network: whether Google takes what a plan of it would do."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import requests
from python_terraform import IsFlagged

from provision import intake
from provision import terraform as driver
from provision.deployment import workspace
from provision.deployment.deployment import Deployment
from provision.deployment.kind import deploy
from provision.deployment.workspace import Workspace
from provision.google import resources
from provision.kinds import registry
from provision.state.location import locate
from provision.terraform.plan import Plan
from provision.time.clock import Clock
from provision.time.stages import Progress
from rehearsal import session
from rehearsal.cloud.server import Cloud
from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
USERS = {resources.GROUP.type, resources.NODE_POOL.type}
FAMILIES = ("a2-highgpu-1g", "a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g")
HOME = {"ZONE": "us-central1-b", "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD"}
KINDS = {
    "vms": {
        "NETWORK_CONFIG": "multi_nic_network",
        "IMAGE_FAMILY_NAME": "common-cu129-ubuntu-2204-nvidia-580",
    },
    "gke": {
        "ORCHESTRATOR_TYPE": "gke",
        "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD",
        # GKE makes no pool of A3 Ultra on demand.
        "ENABLE_SPOT": "yes",
    },
}

SLOW = pytest.mark.slow(
    sibling="tests/runs/test_any_zone.py::test_a_cluster_goes_from_zone_to_zone_until_one_has_it"
)


@dataclass
class Desk:
    """A root with its state, in front of a cloud of its own."""

    folder: Path
    root: Path
    desk: Workspace

    def plan(self, target: Deployment[Any]) -> tuple[Plan, list[dict[str, Any]]]:
        """Plan as Create does; what the last of its plans would do with what."""
        self.desk.tell(target)
        found = self.desk.plan(print)
        shown = self.desk.tool._capture("show", "deployment.tfplan", json=IsFlagged)
        return found, json.loads(shown)["resource_changes"]

    def make(self, target: Deployment[Any]) -> None:
        """Plan and apply."""
        self.plan(target)
        self.desk.tool.apply()


def _target(settings: Mapping[str, str]) -> Deployment[Any]:
    mandatory = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np"}
    loaded = intake.load({"ACTION": "Plan", **mandatory, **settings})
    assert loaded.settings is not None, loaded.problems
    kind = registry.of(loaded.settings)
    return deploy(kind, kind.spec(loaded.settings), locate(loaded.settings))


@pytest.fixture
def stand(terraform: Terraform, tmp_path: Path) -> Iterator[Callable[[Deployment[Any]], Desk]]:
    instant = {**terraform.environment, "CLOUD_CLOCK_RATE": "0"}
    said: list[bytes] = []
    with Cloud(database=tmp_path / "cloud.sqlite", environ=instant) as cloud:
        environ = session.environment(cloud.base_url, tmp_path, instant)
        _make_state_bucket(cloud.base_url)

        def make(target: Deployment[Any]) -> Desk:
            root = workspace.fill_folder(tmp_path, target, target.variables, backend=False)
            voice = driver.Voice(
                write=said.append, tell=print, progress=Progress(Clock(), lambda _: None)
            )
            tool = driver.Terraform(driver.find(environ), root, environ, voice)
            tool.init()
            return Desk(tmp_path / "terraform", root, Workspace(root, tool, live=True))

        yield make


def _make_state_bucket(base_url: str) -> None:
    """The bucket of the state, in whose folder VMs are given a part."""
    uniform = {"uniformBucketLevelAccess": {"enabled": True}}
    requests.post(
        f"{base_url}/storage/v1/b",
        params={"project": "my-project"},
        json={"name": "aiinfra-terraform-my-project", "iamConfiguration": uniform},
        timeout=600,
    ).raise_for_status()


def _refused(changes: list[dict[str, Any]]) -> Iterator[str]:
    """What Google would refuse of a plan, in words."""
    for change in changes:
        before, after = change["change"]["before"], change["change"]["after"]
        actions = change["change"]["actions"]
        made_first = actions == ["create", "delete"]
        if made_first and _name(change["type"], before) == _name(change["type"], after):
            yield f"409: {change['address']} would be made beside one of its name"
        if change["type"] == resources.NETWORK.type and actions == ["update"]:
            yield f"{change['address']} would be changed under its VMs"
    yield from _crowded(changes)
    yield from _in_use(changes)


def _name(type_: str, values: Mapping[str, Any]) -> str:
    look = resources.BY_TYPE[type_].look
    known = {name: _last(value) for name, value in values.items() if isinstance(value, str)}
    return look.path.format_map({**known, "project": "p"})


def _crowded(changes: list[dict[str, Any]]) -> Iterator[str]:
    """Networks with an old and a new subnetwork at the same time."""
    made_first = [
        change
        for change in changes
        if change["type"] == resources.SUBNETWORK.type
        and change["change"]["actions"] == ["create", "delete"]
    ]
    staying = {
        change["change"]["before"]["name"]
        for change in changes
        if change["type"] == resources.NETWORK.type
        and change["change"]["actions"] in (["no-op"], ["update"])
    }
    for change in made_first:
        before, after = change["change"]["before"], change["change"]["after"]
        ranges = (IPv4Network(values["ip_cidr_range"]) for values in (before, after))
        if _last(before["network"]) in staying and next(ranges).overlaps(next(ranges)):
            yield f"400: {change['address']} conflicts with its old range"


def _in_use(changes: list[dict[str, Any]]) -> Iterator[str]:
    """Groups and pools that stay in subnetworks that go."""
    going = {
        change["change"]["before"]["name"]
        for change in changes
        if change["type"] in {resources.SUBNETWORK.type, resources.NETWORK.type}
        and "delete" in change["change"]["actions"]
    }
    if not going:
        return
    for change in changes:
        stays = change["type"] in USERS and "delete" not in change["change"]["actions"]
        if stays and change["change"]["before"] and ".system" not in change["address"]:
            yield f"400: {change['address']} stays in {sorted(going)}"


def _last(link: str) -> str:
    return link.rpartition("/")[2]


def _zones(changes: list[dict[str, Any]]) -> set[str]:
    """Where the machines are after the plan, those for system pods left out."""
    found: set[str] = set()
    for change in changes:
        if change["type"] in USERS and ".system" not in change["address"]:
            after = change["change"]["after"] or {}
            found |= set(after.get("node_locations") or [after.get("zone")])
    return found


def _moves(kind: str, family: str) -> Iterator[dict[str, str]]:
    yield {"ZONE": "us-central1-a"}
    yield {"ZONE": "europe-west4-b"}
    yield from ({"VM_TYPE": other} for other in FAMILIES if other != family)
    if kind == "vms":
        yield {"NETWORK_CONFIG": "new_network"}
        yield {"NETWORK_CONFIG": "default_network"}


@SLOW
# A3 High is to what it moves to what A3 Mega is, with fewer networks.
@pytest.mark.parametrize(
    ("kind", "family"),
    [
        (kind, family)
        for kind, family in itertools.product(KINDS, FAMILIES)
        if family != "a3-highgpu-8g"
    ],
)
def test_google_takes_every_move(
    stand: Callable[[Deployment[Any]], Desk], kind: str, family: str
) -> None:
    settings = {**HOME, **KINDS[kind], "VM_TYPE": family}
    home = _target(settings)
    desk = stand(home)
    desk.make(home)

    for move in _moves(kind, family):
        _, changes = desk.plan(_target({**settings, **move}))
        assert list(_refused(changes)) == [], move
        assert _zones(changes) == {move.get("ZONE", "us-central1-b")}, move


def test_google_would_refuse_what_the_tool_would_plan_without_the_second_look() -> None:
    name = {"name": "np-net", "project": "p", "mtu": 8244}
    subnetwork = {"name": "s", "region": "r", "network": "x/np-net", "ip_cidr_range": "10.0.0.0/16"}

    def change(row: resources.Resource, actions: str, values: Mapping[str, Any]) -> dict[str, Any]:
        both = {"actions": actions.split(), "before": values, "after": values}
        return {"address": row.type, "type": row.type, "change": both}

    network = change(resources.NETWORK, "no-op", name)
    group = change(resources.GROUP, "update", {"name": "np-mig", "zone": "z"})
    twice = change(resources.SUBNETWORK, "create delete", subnetwork)
    assert [line[:3] for line in _refused([network, twice, group])] == ["409", "400", "400"]
