"""What settings that are taken away leave: what is there is as if they had never been given.

Terraform keeps much of what a configuration no longer says. `test_blocks_left_out.py` holds the
modules to that; here Google's own documents are compared.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.runs.conftest import Rehearsal, rehearsed

_KEY: Final = "projects/my-keys/locations/us-central1/keyRings/ml/cryptoKeys/gpu"
_MORE: Final = {
    "KMS_KEY": _KEY,
    "LABELS": "team=ml",
    "GCS_MOUNT_LIST": "my-data:/mnt/data",
    "GCS_OPTIONS": "ro",
    "DISK_SIZE_GB": "500",
    "ENABLE_SPOT": "yes",
    "MAX_RUN_DURATION": "4h",
    "SERVICE_ACCOUNT": "team-vms@my-project.iam.gserviceaccount.com",
}
WORLDS: Final[Mapping[str, tuple[dict[str, str], dict[str, str]]]] = {
    "vms": (
        {"VM_TYPE": "a2-highgpu-1g"},
        {
            **_MORE,
            "ENABLE_COMPACT_PLACEMENT": "yes",
            "METADATA": "a=b",
            "STARTUP_COMMAND": "true",
            "SECRETS": "TOKEN=projects/my-project/secrets/token",
            "IDLE_TIMEOUT": "2h",
            "OS_UPDATES": "no",
            "HTTPS_PROXY": "http://proxy.example.com:3128",
        },
    ),
    "gke": (
        {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24"},
        {
            **_MORE,
            "AUTHORIZED_CIDR": "203.0.113.0/24",
            "ENABLE_COMPACT_PLACEMENT": "yes",
            "ENABLE_RAY_OPERATOR": "yes",
            "GKE_MAINTENANCE": "Sat,Sun 02:00-08:00",
            "GKE_MIN_NODE_COUNT": "1",
            "GKE_MAX_NODE_COUNT": "4",
            "GKE_MAX_PODS_PER_NODE": "32",
            "GKE_NODE_POOL_COUNT": "2",
            "GKE_RELEASE_CHANNEL": "RAPID",
            "GPU_DRIVER_VERSION": "LATEST",
            "SECRETS": "TOKEN=projects/my-project/secrets/token",
        },
    ),
}
"""World -> the settings that stay, and those that are taken away."""

_COMPUTE: Final = "compute/v1/projects/my-project"
_GROUP: Final = f"{_COMPUTE}/zones/us-central1-a/instanceGroupManagers/np-mig"
_CLUSTER: Final = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
_OF_ITS_OWN: Final = re.compile(
    r"(^_|id$|time|timestamp|fingerprint|version|etag|endpoint|certificate|clientkey|ipv4cidrblock"
    r"|^(status|conditions|instancegroupurls|updateinfo|raycluster.*config)$)",
    re.IGNORECASE,
)
"""What each thing has of its own; what stays with a Ray operator that is off; and versions, which
never go back."""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _plain(it) for key, it in value.items() if not _OF_ITS_OWN.search(key)}
        return {key: it for key, it in kept.items() if it not in (None, "", {}, [], False)}
    if isinstance(value, list):
        return [_plain(it) for it in value]
    return value


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Where each value stands; of a list by its place."""
    if isinstance(value, dict | list):
        places = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in places:
            yield from _flat(inner, f"{path} {name}")
    else:
        yield path, value


def _there(rehearsal: Rehearsal, world: str) -> Iterator[tuple[str, Any]]:
    """Google's own documents of what machines come by."""
    if world == "gke":
        # GKE made it with a pool that is gone.
        yield "cluster", rehearsal.google("GET", _CLUSTER) | {"nodeConfig": None}
    else:
        yield "group", (group := rehearsal.google("GET", _GROUP))
        template = group["versions"][0]["instanceTemplate"].rpartition("/")[2]
        found = rehearsal.google("GET", f"{_COMPUTE}/global/instanceTemplates/{template}")
        yield "template", found


@pytest.mark.slow(sibling="tests/runs/test_changes.py::test_each_setting_that_can_change_has_a_row")
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_there_is_as_if_settings_that_go_had_never_been_given(
    tmp_path: Path, world: str
) -> None:
    base, more = WORLDS[world]
    found = []
    for name, first in (("with", base | more), ("without", base)):
        (tmp_path / name).mkdir()
        with rehearsed(tmp_path / name) as rehearsal:
            rehearsal.settings |= first
            rehearsal.presume()
            made = rehearsal.run("Create")
            assert made.code == 0, made.said
            for gone in first.keys() - base.keys():
                del rehearsal.settings[gone]
            left = rehearsal.run("Create", "--yes", *(["--replace-vms"] if world == "vms" else []))
            assert left.code == 0, left.said
            found.append({name: _plain(it) for name, it in _there(rehearsal, world)})
    taken_away, never_given = (dict(_flat(one)) for one in found)
    differing = sorted(taken_away.items() ^ never_given.items(), key=str)
    assert not differing, "\n".join(map(str, differing))
