"""Each setting that can change x what runs: what the plan says is what Create does, and no more.

A cell is Plan, Create, Plan: the first says what the change does, the second does that and leaves
all that running machines hold, and the third has nothing to do. What does the same to what runs is
created together, and planned alone for VMs on demand and for nodes.
"""

import enum
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from provision.settings.choices import Orchestrator
from provision.settings.model import BY_VARIABLES, OF_PROGRAM, example_of, kinds_of
from rehearsal import session
from tests.runs.conftest import Ended, Rehearsal, Rehearse, rehearsed

Values = dict[str, str]


class Does(enum.Enum):
    """What a change does to what runs."""

    NOTHING = "nothing that Terraform makes"
    BESIDE = "something beside the machines, or more of them"
    REACHES = "something of machines that run on"
    NEW = "new machines alone"
    ENDS = "the end of machines, of data, or of what carries them: it asks"
    REFUSED = "a refusal"


NOTHING, BESIDE, REACHES, NEW, ENDS, REFUSED = Does

_A2: Final = {"VM_TYPE": "a2-highgpu-2g", "INSTANCE_COUNT": "2"}
_A3_ULTRA: Final = {
    "VM_TYPE": "a3-ultragpu-8g",
    "INSTANCE_COUNT": "2",
    "NETWORK_CONFIG": "multi_nic_network",
    "ZONE": "us-central1-b",
}
WORLDS: Final[Mapping[str, Values]] = {
    "vms": {
        **_A2,
        "ENABLE_COMPACT_PLACEMENT": "yes",
        "GCS_MOUNT_LIST": "my-data:/mnt/data",
        "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD",
    },
    "spot": {**_A2, "ENABLE_SPOT": "yes"},
    "flex": {**_A2, "ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "4h"},
    "reserved": {**_A2, "RESERVATION_NAME": "mine"},
    "multi-nic": {
        "VM_TYPE": "a3-megagpu-8g",
        "INSTANCE_COUNT": "2",
        "NETWORK_CONFIG": "multi_nic_network",
    },
    "flex-compact": {
        **_A3_ULTRA,
        "ENABLE_FLEX_START": "yes",
        "MAX_RUN_DURATION": "4h",
        "ENABLE_COMPACT_PLACEMENT": "yes",
    },
    "bound-compact": {
        **_A3_ULTRA,
        "RESERVATION_NAME": "dense",
        "ENABLE_COMPACT_PLACEMENT": "yes",
    },
    "gke": {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "2"},
}

_TEAM: Final = "team-vms@my-project.iam.gserviceaccount.com"
_KEY: Final = "projects/my-keys/locations/us-central1/keyRings/ml/cryptoKeys/gpu"
_T4: Final = {"VM_TYPE": "n1-standard-8", "GPU_COUNT": "1", "ACCELERATOR_TYPE": "nvidia-tesla-t4"}
_NEW: Final = {"NETWORK_CONFIG": "new_network"}
_THERE: Final = {"NETWORK_CONFIG": "existing", "NETWORK": "my-vpc", "SUBNETWORK": "gpu-vms"}
_RANGES: Final = {"GKE_PODS_RANGE": "pods", "GKE_SERVICES_RANGE": "services"}
_BEHIND: Final = {"HTTPS_PROXY": "http://proxy.example.com:3128", "NO_PROXY": "10.0.0.0/8"}
_MIRRORED: Final = {"IMAGE_MIRROR": "us-docker.pkg.dev/my-project/mirror"}
_COMPANY: Final = str(Path(__file__).parents[1] / "company.pem")
_DATA: Final = {"GCS_MOUNT_LIST": "my-data:/mnt/data,my-models:/mnt/models"}
_IN_OTHER_ROWS: Final = {
    *("ACTION", "SHOW_PROXY_URL", "JOB_COMMAND", "JOB_ENV", "JOB_OPTIONS", "MAX_COST")
}
_OF_THE_RUN: Final = {
    name.upper(): example_of(name)
    for name in BY_VARIABLES
    if name in OF_PROGRAM and name.upper() not in _IN_OTHER_ROWS
} | {"MAX_HOURLY_COST": "10000", "SKIP_CHECKS": "quota"}

OTHERS: Final = {
    *("action", "impersonate", "name_prefix", "project_id", "team_defaults", "terraform_gcs_path")
}
"""What is no change of a cluster: another action, cluster or state, or another who does it."""


@dataclass(frozen=True)
class Row:
    """What a change of settings does."""

    change: Values  # setting -> its new value; "" to leave it out
    does: Does  # what it does to VMs on demand, or to nodes
    # world -> what it does there; other values of settings belong to other rows
    otherwise: Mapping[str, Does] | None = None
    alone: bool = False  # whether it goes with no other change, and is created alone

    def at(self, world: str) -> Does:
        """What it does in a world."""
        return (self.otherwise or {}).get(world, self.does)


_BOTH: Final[Mapping[str, Row]] = {
    "ZONE": Row({"ZONE": "us-central1-b"}, ENDS, {"reserved": REFUSED}),
    "REGION": Row(
        {"ZONE": "europe-west4-b", "REGION": "europe-west4"}, ENDS, {"reserved": REFUSED}
    ),
    "INSTANCE_COUNT": Row({"INSTANCE_COUNT": "3"}, BESIDE, alone=True),
    "INSTANCE_COUNT-fewer": Row({"INSTANCE_COUNT": "1"}, ENDS, {"flex": REFUSED}),
    "VM_TYPE": Row(
        {"VM_TYPE": "a2-highgpu-1g"}, NEW, {"gke": ENDS, "reserved": REFUSED, "multi-nic": ENDS}
    ),
    "GPU_COUNT+ACCELERATOR_TYPE": Row(
        _T4, NEW, {"vms": REFUSED, "gke": ENDS, "reserved": REFUSED, "multi-nic": ENDS}, alone=True
    ),
    "DISK_SIZE_GB": Row({"DISK_SIZE_GB": "500"}, NEW, {"gke": ENDS}),
    "DISK_TYPE": Row({"DISK_TYPE": "pd-balanced"}, NEW, {"gke": ENDS}),
    "ENABLE_FLEX_START": Row(
        {"ENABLE_FLEX_START": "yes", "ENABLE_COMPACT_PLACEMENT": ""},
        NEW,
        {"gke": ENDS, "spot": REFUSED, "flex": NOTHING, "reserved": REFUSED},
        alone=True,
    ),
    "MAX_RUN_DURATION": Row({"MAX_RUN_DURATION": "12h"}, NEW, {"gke": ENDS}),
    "ENABLE_SPOT": Row(
        {"ENABLE_SPOT": "yes"},
        NEW,
        {"gke": ENDS, "spot": NOTHING, "flex": REFUSED, "reserved": REFUSED},
        alone=True,
    ),
    "RESERVATION_NAME": Row(
        {"RESERVATION_NAME": "other", "ENABLE_COMPACT_PLACEMENT": ""},
        NEW,
        {"gke": ENDS, "spot": REFUSED, "flex": REFUSED},
        alone=True,
    ),
    # VMs without an end get the longest one that this allows.
    "MAX_COST": Row(
        {"MAX_COST": "10000"},
        NEW,
        {"gke": REFUSED, "flex": NOTHING, "flex-compact": NOTHING, "bound-compact": REFUSED},
    ),
    "SERVICE_ACCOUNT": Row({"SERVICE_ACCOUNT": _TEAM}, NEW, {"gke": ENDS}),
    "LABELS": Row({"LABELS": '{ team = "research" }'}, REACHES, {"gke": BESIDE, "flex": NEW}),
    "GCS_MOUNT_LIST": Row(_DATA, NEW, {"gke": BESIDE}),
    "GCS_OPTIONS": Row({**_DATA, "GCS_OPTIONS": "dir-mode=755"}, NEW, {"gke": BESIDE}),
    "GCS_CACHE_GB": Row({**_DATA, "GCS_CACHE_GB": "100"}, REFUSED, {"multi-nic": NEW}),
    "NFS_FILESHARE_LIST": Row(
        {"NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD,/mnt/more:BASIC_SSD"}, NEW, {"gke": BESIDE}
    ),
    "SKIP_CHECKS+PRICES+...": Row(_OF_THE_RUN, NOTHING),
    "JOB_OPTIONS+...": Row(
        {
            "JOB_COMMAND": "true",
            "JOB_ENV": '{ A = "b" }',
            "JOB_OPTIONS": "--name train --nodes 1 --time 12h --restarts 3 --image python:3.12",
        },
        NOTHING,
    ),
}
_OF_VMS: Final[Mapping[str, Row]] = {
    **_BOTH,
    "CAPACITY": Row(
        {"CAPACITY": "spot"},
        NEW,
        {"spot": REFUSED, "flex": REFUSED, "reserved": REFUSED},
        alone=True,
    ),
    "ENABLE_COMPACT_PLACEMENT": Row(
        {"ENABLE_COMPACT_PLACEMENT": "yes"},
        NEW,
        {"vms": NOTHING, "flex": REFUSED, "reserved": REFUSED},
        alone=True,
    ),
    "ORCHESTRATOR_TYPE": Row({"ORCHESTRATOR_TYPE": "ray"}, NEW, alone=True),
    "ORCHESTRATOR_TYPE-gke": Row({"ORCHESTRATOR_TYPE": "gke", "NETWORK_CONFIG": ""}, REFUSED),
    "IMAGE_NAME+IMAGE_PROJECT": Row(
        {"IMAGE_NAME": "my-image", "IMAGE_PROJECT": "my-project"}, NEW, alone=True
    ),
    "IMAGE_FAMILY_NAME": Row(
        {"IMAGE_FAMILY_NAME": "common-cu129-ubuntu-2404-nvidia-580"}, NEW, {"multi-nic": REFUSED}
    ),
    "NETWORK_CONFIG": Row(_NEW, ENDS),
    "NETWORK_CONFIG+NETWORK+SUBNETWORK": Row(_THERE, ENDS),
    "NETWORK_CONFIG+NETWORK_RANGE": Row({**_NEW, "NETWORK_RANGE": "10.64.0.0/24"}, ENDS),
    "NETWORK_RANGE": Row({"NETWORK_RANGE": "10.64.0.0/22"}, REFUSED, {"multi-nic": ENDS}),
    # A share of a basic tier takes none, as other rows have one.
    "KMS_KEY": Row({"KMS_KEY": _KEY}, NEW, {"vms": REFUSED}, alone=True),
    "MAKE_FIREWALL": Row({"MAKE_FIREWALL": "yes"}, REFUSED),
    "GPU_SUBNETWORKS": Row(
        {**_THERE, "GPU_SUBNETWORKS": "gpu-{1..8}"}, REFUSED, {"multi-nic": ENDS}
    ),
    "ENABLE_EXTERNAL_IP": Row({"ENABLE_EXTERNAL_IP": "no", "SKIP_CHECKS": "network"}, NEW),
    "METADATA": Row({"METADATA": '{ key1 = "val" }'}, REACHES, {"flex": NEW}),
    "STARTUP_COMMAND": Row({"STARTUP_COMMAND": "true"}, NEW),
    "STARTUP_RESTART": Row({"STARTUP_COMMAND": "true", "STARTUP_RESTART": "always"}, NEW),
    "SECRETS": Row(
        {"SECRETS": "TOKEN=projects/my-project/secrets/token", "STARTUP_COMMAND": "true"},
        NEW,
        alone=True,
    ),
    "VM_LOCALFILE_DEST_PATH": Row({"VM_LOCALFILE_DEST_PATH": "/data"}, NOTHING),
    "ENABLE_NODE_SSH": Row({"ENABLE_NODE_SSH": "no"}, NEW),
    "ENABLE_NOTEBOOK": Row({"ENABLE_NOTEBOOK": "no"}, NEW),
    "SHOW_PROXY_URL": Row({"SHOW_PROXY_URL": "no"}, NOTHING),
    "DISABLE_OPS_AGENT": Row({"DISABLE_OPS_AGENT": "yes"}, NEW),
    "IDLE_TIMEOUT": Row({"IDLE_TIMEOUT": "2h"}, NEW, {"flex": REFUSED}, alone=True),
    "SECURE_BOOT+IMAGE_FAMILY_NAME+IMAGE_PROJECT": Row(
        {
            "SECURE_BOOT": "yes",
            "IMAGE_PROJECT": "ubuntu-os-accelerator-images",
            "IMAGE_FAMILY_NAME": "ubuntu-accelerator-2404-amd64-with-nvidia-580",
            "ENABLE_NOTEBOOK": "no",
        },
        NEW,
        {"multi-nic": REFUSED},
        alone=True,
    ),
    "OS_UPDATES": Row({"OS_UPDATES": "no"}, NEW),
    "HTTPS_PROXY+NO_PROXY": Row(_BEHIND, NEW),
    "CA_BUNDLE": Row({"CA_BUNDLE": _COMPANY}, NEW),
    "APT_MIRROR": Row({"APT_MIRROR": "https://mirror.example.com/apt"}, NEW),
    "IMAGE_MIRROR": Row(_MIRRORED, NOTHING, {"multi-nic": NEW}),
}
_TAKEN_AWAY: Final[Mapping[str, Mapping[str, Row]]] = {
    "vms": {
        "ENABLE_COMPACT_PLACEMENT-off": Row({"ENABLE_COMPACT_PLACEMENT": ""}, NEW),
        "GCS_MOUNT_LIST-off": Row({"GCS_MOUNT_LIST": ""}, NEW),
        "GCS_OPTIONS-ro": Row({"GCS_OPTIONS": "ro"}, NEW),
        "NFS_FILESHARE_LIST-off": Row({"NFS_FILESHARE_LIST": ""}, ENDS),
    },
    "spot": {
        "KMS_KEY": Row({"KMS_KEY": _KEY}, NEW, alone=True),
        "ENABLE_SPOT-off": Row({"ENABLE_SPOT": ""}, NEW, alone=True),
        "ENABLE_SPOT-to-flex": Row(
            {"ENABLE_SPOT": "", "ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "4h"},
            NEW,
            alone=True,
        ),
    },
    "flex": {
        "ENABLE_FLEX_START-off": Row(
            {"ENABLE_FLEX_START": "", "MAX_RUN_DURATION": ""}, NEW, alone=True
        ),
        "ENABLE_FLEX_START-to-spot": Row(
            {"ENABLE_FLEX_START": "", "ENABLE_SPOT": "yes"}, NEW, alone=True
        ),
    },
    "reserved": {"RESERVATION_NAME-off": Row({"RESERVATION_NAME": ""}, NEW, alone=True)},
    "multi-nic": {},
    "flex-compact": {
        "ENABLE_COMPACT_PLACEMENT-off": Row({"ENABLE_COMPACT_PLACEMENT": ""}, NOTHING),
        "ENABLE_FLEX_START-off": Row({"ENABLE_FLEX_START": "", "MAX_RUN_DURATION": ""}, NEW),
        "ENABLE_COMPACT_PLACEMENT-off+NETWORK_RANGE": Row(
            {"ENABLE_COMPACT_PLACEMENT": "", "NETWORK_RANGE": "10.64.0.0/22"}, ENDS
        ),
        "ENABLE_FLEX_START-to-spot": Row({"ENABLE_FLEX_START": "", "ENABLE_SPOT": "yes"}, NEW),
    },
    "bound-compact": {
        "ENABLE_COMPACT_PLACEMENT-off": Row({"ENABLE_COMPACT_PLACEMENT": ""}, NOTHING),
        "RESERVATION_NAME-to-flex": Row(
            {"RESERVATION_NAME": "", "ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "4h"}, NEW
        ),
        "RESERVATION_NAME-to-spot": Row({"RESERVATION_NAME": "", "ENABLE_SPOT": "yes"}, NEW),
    },
}
_OF_NODES: Final[Mapping[str, Row]] = {
    **_BOTH,
    "ORCHESTRATOR_TYPE": Row({"ORCHESTRATOR_TYPE": "none"}, REFUSED),
    "CAPACITY": Row({"CAPACITY": "spot"}, ENDS, alone=True),
    "NETWORK_CONFIG+NETWORK+SUBNETWORK+...": Row({**_THERE, **_RANGES}, ENDS),
    "NETWORK_RANGE": Row({"NETWORK_RANGE": "10.64.0.0/22"}, ENDS),
    "NETWORK_RANGE-larger": Row({"NETWORK_RANGE": "10.0.0.0/15"}, BESIDE),
    "KMS_KEY": Row({"KMS_KEY": _KEY}, ENDS),
    "GPU_SUBNETWORKS": Row({**_THERE, **_RANGES, "GPU_SUBNETWORKS": "gpu-{1..8}"}, REFUSED),
    "MAKE_FIREWALL": Row({"MAKE_FIREWALL": "yes"}, REFUSED),
    "GKE_PODS_RANGE": Row({"GKE_PODS_RANGE": "10.64.0.0/16"}, ENDS),
    "GKE_SERVICES_RANGE": Row({"GKE_SERVICES_RANGE": "10.64.0.0/20"}, ENDS),
    "GKE_MAX_PODS_PER_NODE": Row({"GKE_MAX_PODS_PER_NODE": "32"}, ENDS),
    "ENABLE_COMPACT_PLACEMENT": Row({"ENABLE_COMPACT_PLACEMENT": "yes"}, ENDS),
    "SECRETS": Row({"SECRETS": "TOKEN=projects/my-project/secrets/token"}, BESIDE),
    "ENABLE_QUEUED_PROVISIONING": Row(
        {"ENABLE_QUEUED_PROVISIONING": "yes", "GKE_MAX_NODE_COUNT": "4"}, ENDS
    ),
    "GKE_VERSION": Row({"GKE_VERSION": "1.36."}, BESIDE),
    "GKE_RELEASE_CHANNEL": Row({"GKE_RELEASE_CHANNEL": "RAPID"}, BESIDE),
    "GKE_MAINTENANCE": Row({"GKE_MAINTENANCE": "Sat,Sun 02:00-08:00"}, BESIDE),
    "GKE_NODE_POOL_COUNT": Row({"GKE_NODE_POOL_COUNT": "2"}, BESIDE),
    "GKE_MIN_NODE_COUNT+GKE_MAX_NODE_COUNT": Row(
        {"GKE_MIN_NODE_COUNT": "1", "GKE_MAX_NODE_COUNT": "4"}, BESIDE
    ),
    "GKE_NODE_POOLS": Row(
        {"VM_TYPE": "", "GKE_NODE_POOLS": "name=a100,vm_type=a2-highgpu-1g,count=1"}, ENDS
    ),
    "SYSTEM_NODE_POOL": Row({"SYSTEM_NODE_POOL": "vm_type=e2-standard-8"}, ENDS),
    "AUTHORIZED_CIDR": Row({"AUTHORIZED_CIDR": "203.0.113.0/24"}, BESIDE),
    "GPU_DRIVER_VERSION": Row({"GPU_DRIVER_VERSION": "LATEST"}, ENDS),
    "ENABLE_KUEUE": Row({"ENABLE_KUEUE": "no"}, NOTHING),
    "KUEUE_QUEUES": Row({"KUEUE_QUEUES": "team-a:1"}, NOTHING),
    "JOB_OPTIONS-queue": Row({"JOB_OPTIONS": "--priority high --queue team-a"}, NOTHING),
    "KUEUE_GPU_QUOTA": Row({"KUEUE_GPU_QUOTA": "16"}, NOTHING),
    "HTTPS_PROXY+NO_PROXY": Row(_BEHIND, NOTHING),
    "CA_BUNDLE": Row({"CA_BUNDLE": _COMPANY}, NOTHING),
    "IMAGE_MIRROR": Row(_MIRRORED, NOTHING),
    "ENABLE_RAY_OPERATOR": Row({"ENABLE_RAY_OPERATOR": "yes"}, BESIDE),
}


_OF_ONE_KIND: Final = {"flex-compact", "bound-compact"}
"""The worlds that are there for their own rows alone."""


def _rows(world: str) -> Mapping[str, Row]:
    if world in _OF_ONE_KIND:
        return _TAKEN_AWAY[world]
    return _OF_NODES if world == "gke" else {**_OF_VMS, **_TAKEN_AWAY[world]}


@dataclass(frozen=True)
class Cell:
    """A change in a world, or several that do the same."""

    world: str
    name: str  # the row's, or what the rows of it do
    change: Values  # setting -> its new value; "" to leave it out
    does: Does
    is_created: bool = True  # whether it is, or but planned, as it is created together with others

    def __str__(self) -> str:
        return f"{self.world}-{self.name}"

    @property
    def wanted(self) -> Values:
        """All settings after the change."""
        both = WORLDS[self.world] | self.change
        return {name: value for name, value in both.items() if value}


QUICK: Final = {"vms-LABELS", "vms-SKIP_CHECKS+PRICES+...", "vms-ORCHESTRATOR_TYPE-gke"}


def _cells() -> Iterator[Cell]:
    for world in WORLDS:
        together: dict[Does, list[Row]] = {}
        for name, row in _rows(world).items():
            does, taken_away = row.at(world), _TAKEN_AWAY.get(world, {})
            is_planned = world in {"vms", "gke"} or name in taken_away
            leaves = {ENDS, REFUSED, NOTHING} if is_planned else {ENDS, REFUSED}
            joins = not row.alone and name not in taken_away and does not in leaves
            if joins:
                together.setdefault(does, []).append(row)
            if is_planned:
                is_created = not joins or f"{world}-{name}" in QUICK
                yield Cell(world, name, row.change, does, is_created)
        for does, rows in together.items():
            change = {key: value for row in rows for key, value in row.change.items()}
            yield Cell(world, f"{does.name}-together", change, does)


CELLS: Final = tuple(_cells())
SLOW: Final = pytest.mark.slow(sibling="::test_a_change_does_what_the_plan_says_and_no_more")


def test_each_setting_that_can_change_has_a_row() -> None:
    for world in WORLDS.keys() - _OF_ONE_KIND:
        kind = Orchestrator.GKE if world == "gke" else Orchestrator.NONE
        can = {
            name.upper()
            for name in BY_VARIABLES
            if name not in OTHERS and kind in (kinds_of(name) or [kind])
        }
        assert {setting for row in _rows(world).values() for setting in row.change} == can, world


@pytest.fixture(scope="session")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Make the memory of a cloud in which what a world has stands, or find the one of before."""
    made: dict[str, Path] = {}

    def make(world: str) -> Path:
        if world not in made:
            folder = tmp_path_factory.mktemp("world")
            with rehearsed(folder) as rehearsal:
                _prepare(rehearsal, world)
                created = rehearsal.run("Create", **WORLDS[world])
                assert created.code == 0, created.said
            made[world] = folder / session.DATABASE
        return made[world]

    return make


def _prepare(rehearsal: Rehearsal, world: str) -> None:
    """Make what the settings name, before and after a change."""
    settings = dict(rehearsal.settings)
    rehearsal.settings |= {
        **WORLDS[world],
        **_DATA,
        **_THERE,
        **_RANGES,
        "KMS_KEY": _KEY,
        "SERVICE_ACCOUNT": _TEAM,
        "SECRETS": "TOKEN=projects/my-project/secrets/token",
        "IMAGE_NAME": "my-image",
        "IMAGE_PROJECT": "my-project",
    }
    rehearsal.settings.pop("RESERVATION_NAME", None)
    rehearsal.presume()
    rehearsal.settings = settings
    place = settings | WORLDS[world]
    for name, more in {"mine": {}, "other": {}, "dense": {"deploymentType": "DENSE"}}.items():
        if name != "dense" or world in _OF_ONE_KIND:
            rehearsal.reserve(name, place["VM_TYPE"], 3, place["ZONE"], **more)


@pytest.mark.parametrize(
    "cell", [pytest.param(it, id=str(it), marks=[] if str(it) in QUICK else [SLOW]) for it in CELLS]
)
def test_a_change_does_what_the_plan_says_and_no_more(
    world_of: Callable[[str], Path], rehearse: Rehearse, tmp_path: Path, cell: Cell
) -> None:
    shutil.copy(world_of(cell.world), tmp_path / session.DATABASE)
    rehearsal = rehearse()
    before, all_of_it = _vms(rehearsal), _all_of_it(rehearsal)

    planned = rehearsal.run("Plan", **cell.wanted)
    assert _does(planned) is cell.does, planned.said
    if cell.does in {NOTHING, REFUSED} or not cell.is_created:
        assert planned.code in ({2, 4, 5} if cell.does is REFUSED else {0}), planned.said
        assert _all_of_it(rehearsal) == all_of_it
        return
    created = rehearsal.run("Create", **cell.wanted)
    if cell.does is ENDS or any(it["outside"] for it in planned.document["plan"]["opens"]):
        assert (created.code, created.problem["code"]) == (2, "approval-needed"), created.said
        assert _vms(rehearsal) == before
        created = rehearsal.run("Create", "--yes", **cell.wanted)
    else:
        assert _vms(rehearsal).items() >= before.items()
    assert created.code == 0, created.said
    # A group of flex start that is replaced is asked for VMs later: one is added then.
    counts = [{**it.document["changes"], "add": 0} for it in (planned, created)]
    assert counts[0] == counts[1], created.said
    assert list(_lacking(rehearsal)) == []
    if cell.does is ENDS:
        assert "stays, and VMs that come" not in created.said
    else:
        older = {it["name"] for it in created.document.get("out_of_date", [])}
        assert older == (set(before) if cell.does is NEW else set()), created.said

    again = rehearsal.run("Plan", **cell.wanted)
    assert (again.code, again.document["changes"]) == (0, {"add": 0, "change": 0, "destroy": 0}), (
        again.said
    )


def _does(planned: Ended) -> Does:
    """What a Plan says that a change does."""
    if planned.code:
        return REFUSED
    plan = planned.document["plan"]
    carries = {"cluster", "network", "subnetwork", "router", "Cloud NAT", "firewall rule"}
    if any(it["machines"] or it["data"] or it["noun"] in carries for it in plan["losses"]):
        return ENDS
    if kept := plan.get("kept"):
        return REACHES if "without a restart" in kept["words"] else NEW
    return BESIDE if any(planned.document["changes"].values()) else NOTHING


def _instances(rehearsal: Rehearsal) -> Iterator[dict[str, Any]]:
    found = rehearsal.google("GET", "compute/v1/projects/my-project/aggregated/instances")
    for place in found["items"].values():
        yield from place.get("instances", [])


def _all_of_it(rehearsal: Rehearsal) -> set[str]:
    """What there is, but for the logs."""
    return {line for line in rehearsal.resources() if "/logs/" not in line}


def _vms(rehearsal: Rehearsal) -> dict[str, str]:
    """VM -> its number, which one that is made anew does not have."""
    return {one["name"]: one["id"] for one in _instances(rehearsal)}


def _lacking(rehearsal: Rehearsal) -> Iterator[str]:
    """What VMs that run were made of, act as or have mounted, and is there no more."""
    for path in sorted({path for vm in _instances(rehearsal) for path in _held(vm)}):
        try:
            found = rehearsal.google("GET", path)
        except requests.HTTPError:
            yield path
            continue
        if "/iam?" in path and not _has_bindings(found, path.rpartition("#")[2]):
            yield path


def _held(vm: Mapping[str, Any]) -> Iterator[str]:
    """The paths of what a VM holds; those of the policies of buckets end with its account."""
    items = {it["key"]: it["value"] for it in vm["metadata"]["items"]}
    networks = (it["network"] for it in vm["networkInterfaces"])
    for link in (*vm["resourcePolicies"], *networks, items.get("instance-template", "")):
        if path := link.rpartition("/v1/")[2]:
            yield f"compute/v1/{path}"
    mounts = json.loads(items.get("aiinfra-config", "{}")).get("mounts", [])
    for account in vm["serviceAccounts"]:
        email = account["email"]
        yield f"iam/v1/projects/my-project/serviceAccounts/{email}"
        for mount in mounts:
            if mount["type"] == "gcsfuse":
                query = "optionsRequestedPolicyVersion=3"
                yield f"storage/v1/b/{mount['remote_path']}/iam?{query}#{email}"


def _has_bindings(policy: Mapping[str, Any], email: str) -> bool:
    members = (member for it in policy.get("bindings", []) for member in it["members"])
    return f"serviceAccount:{email}" in members
