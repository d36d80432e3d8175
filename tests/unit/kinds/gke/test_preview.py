"""What a plan foretells of Kubernetes, where the plan or this machine does not know all."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.kinds.gke import preview
from provision.settings.model import Settings
from provision.spec import cluster
from provision.terraform.plan import UNKNOWN, Plan
from rehearsal import session

if TYPE_CHECKING:
    from provision.errors import Problem

TEXTS = {
    "project_id": "my-project",
    "name_prefix": "demo",
    "zone": "us-central1-a",
    "orchestrator_type": "gke",
    "vm_type": "a3-highgpu-8g",
    "enable_spot": "yes",
    "gke_max_node_count": "2",
    "nfs_fileshare_list": "/mnt/nfs:ZONAL:1024",
}
OUTPUTS: dict[str, Any] = {
    "cluster": {
        "name": "demo-gke",
        "location": "us-central1",
        "dns_endpoint": UNKNOWN,
        "version": UNKNOWN,
    },
    "node_pools": {
        "demo-nodepool-1": {
            "name": "demo-nodepool-1",
            "machine_type": "a3-highgpu-8g",
            "mode": "spot",
            "max": 2,
        }
    },
    "networks": [],
    "service_accounts": {"workload": "w@x"},
    "filestores": [{"path": "/mnt/nfs", "ip": UNKNOWN, "share": "/share"}],
}


def _files(version: str | None, manifests: str) -> tuple[dict[str, str], list[Problem]]:
    spec = dataclasses.replace(cluster.gke(Settings(TEXTS)), version=version)
    notes: list[Problem] = []
    context = SimpleNamespace(environ={"AIINFRA_MANIFESTS": manifests}, note=notes.extend)
    tool = SimpleNamespace(plan=lambda: Plan(foreseen=OUTPUTS))
    found = preview.files(
        cast("Any", context),
        cast("Any", SimpleNamespace(spec=spec)),
        cast("Any", SimpleNamespace(tool=tool)),
    )
    return dict(found), notes


def test_without_manifests_all_but_the_add_ons_own_objects_is_written() -> None:
    whole, notes = _files(None, str(session.MANIFESTS))
    bare, silent = _files(None, "")
    assert len(notes) == 2
    assert silent == []
    assert [name for name in bare if name.startswith("jobs/")] == [
        name for name in whole if name.startswith("jobs/")
    ]
    gone = {name[14:] for name in whole} - {name[14:] for name in bare}
    assert gone == {"kinds-of-jobset.yaml", "kinds-of-kueue.yaml", "kueue.yaml"}


@pytest.mark.parametrize(
    ("version", "plugin"), [("1.33.5-gke.1080000", "v3.1.9"), (None, "v3.1.12")]
)
def test_the_version_that_is_asked_for_decides_where_the_plan_knows_none(
    version: str | None, plugin: str
) -> None:
    files, _ = _files(version, "")
    (installer,) = (text for name, text in files.items() if "nccl-on-the-nodes" in name)
    assert f"nccl-plugin-gpudirecttcpx-dev:{plugin}" in installer
    assert UNKNOWN not in installer
    (storage,) = (text for name, text in files.items() if "storage" in name)
    assert f"server: {UNKNOWN}" in storage
