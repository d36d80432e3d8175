"""The waist of the GKE side: what Python hands over is what `terraform/gke` declares."""

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest

from provision.deployment.deployment import RunInputs
from provision.google.owner import Owner
from provision.kinds.gke import variables
from provision.settings.model import Settings
from provision.spec import cluster
from provision.state.location import StateLocation

ROOT = Path(__file__).parents[2] / "terraform/gke"
MANDATORY = {
    "project_id": "my-project",
    "name_prefix": "np",
    "zone": "us-central1-a",
    "orchestrator_type": "gke",
}
CASES: list[dict[str, str]] = [
    {},
    {"vm_type": "a3-ultragpu-8g", "enable_flex_start": "yes", "enable_queued_provisioning": "yes"},
    {"gke_node_pools": "name=a,vm_type=a3-megagpu-8g,spot=yes;name=b,vm_type=g2-standard-4,max=2"},
    {"gcs_mount_list": "data:/mnt/data", "nfs_fileshare_list": "/mnt/nfs:BASIC_SSD"},
]


def _declared() -> dict[str, str]:
    """Variable -> type, as written."""
    with (ROOT / "variables.tf").open(encoding="utf-8") as file:
        blocks = hcl2.load(file)["variable"]
    return {
        name.strip('"'): str(about["type"]) for block in blocks for name, about in block.items()
    }


def _keys(value: Any) -> set[str]:
    """The keys of an object and of all objects in it; not those of the map of pools."""
    if isinstance(value, list):
        return {key for item in value for key in _keys(item)}
    if not isinstance(value, dict):
        return set()
    return value.keys() | {key for inner in value.values() for key in _keys(inner)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: "+".join(case) or "mandatory")
def test_python_hands_over_exactly_what_the_root_declares(case: dict[str, str]) -> None:
    location = StateLocation("bucket", "np-deployment", is_default=True)
    declared = _declared()

    spec = cluster.gke(Settings(MANDATORY | case))
    made = variables.variables(spec, Owner("3f9c2a71"), location, RunInputs())

    assert made.keys() == declared.keys()
    pools = list(made.pop("node_pools").values())
    for name, value in {**made, "node_pools": pools, "labels": {}}.items():
        known = set(re.findall(r"\w+", declared[name]))
        assert _keys(value) <= known, name
    assert _keys(pools) >= {"machine_type", "gpu_networks", "max_run_seconds", "driver", "size_gb"}
