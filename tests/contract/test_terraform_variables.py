"""The waist: what Python hands over is what the Terraform root declares, in both directions."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2
import pytest

from provision import intake
from provision.deployment.deployment import ResizeRequestSpec, RunInputs
from provision.deployment.kind import deploy
from provision.files.archive import Archive
from provision.kinds import registry
from provision.spec.networks import FirewallRule
from provision.state.location import locate

ROOTS = Path(__file__).parents[2] / "terraform"
CASES = [
    {},
    {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "2"},
    {"NETWORK_CONFIG": "new_network", "SERVICE_ACCOUNT": "default", "IMAGE_NAME": "mine"},
    {
        "NETWORK_CONFIG": "existing",
        "NETWORK": "my-vpc",
        "SUBNETWORK": "gpu-vms",
        "VM_TYPE": "a3-megagpu-8g",
        "GPU_SUBNETWORKS": "gpu-{1..8}",
        "MAKE_FIREWALL": "yes",
    },
    {"NETWORK_CONFIG": "multi_nic_network", "VM_TYPE": "a3-ultragpu-8g"},
    {"ENABLE_SPOT": "yes", "GCS_MOUNT_LIST": "data:/mnt/data", "GCS_OPTIONS": "ro"},
    {"STARTUP_COMMAND": "true", "SECRETS": "A=projects/my-project/secrets/a:3"},
    {
        "VM_TYPE": "a3-megagpu-8g",
        "RESERVATION_NAME": "mine",
        "ENABLE_COMPACT_PLACEMENT": "yes",
        "DISABLE_OPS_AGENT": "yes",
    },
    {"VM_TYPE": "a4x-highgpu-4g", "RESERVATION_NAME": "mine", "DISK_TYPE": "hyperdisk-balanced"},
    {"ENABLE_FLEX_START": "yes", "VM_TYPE": "a3-highgpu-8g", "ORCHESTRATOR_TYPE": "ray"},
    {"NFS_FILESHARE_LIST": "/mnt/a:BASIC_SSD,/mnt/b:ENTERPRISE:1024", "ENABLE_NOTEBOOK": "no"},
    {
        "NFS_FILESHARE_LIST": "/mnt/a:ZONAL",
        "KMS_KEY": "projects/my-keys/locations/us-central1/keyRings/r/cryptoKeys/k",
    },
    {"HTTPS_PROXY": "http://proxy:3128", "APT_MIRROR": "https://mirror/apt"},
    {"ORCHESTRATOR_TYPE": "ray", "PIP_INDEX": "https://index/simple"},
    {"ORCHESTRATOR_TYPE": "slurm", "IDLE_TIMEOUT": "2h"},
    {"LABELS": "a=b", "METADATA": "a=b", "SERVICE_ACCOUNT": "me@p.iam.gserviceaccount.com"},
]


RULE = FirewallRule(
    name="np-internal",
    network="projects/my-project/global/networks/my-vpc",
    purpose="",
    source="10.0.0.0/8",
    allowed={"tcp": ()},
)


def _names(declared: str) -> set[str]:
    """The attributes that a type names."""
    return set(re.findall(r"(\w+) = ", declared))


def _declared(root: str) -> dict[str, str]:
    """Variable -> type, as written."""
    with (ROOTS / root / "variables.tf").open() as file:
        blocks = hcl2.load(file)["variable"]
    return {
        name.strip('"'): str(about["type"]) for block in blocks for name, about in block.items()
    }


def _made(case: dict[str, str]) -> dict[str, Any]:
    mandatory = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
    loaded = intake.load({"ACTION": "Plan", **mandatory, **case})
    assert loaded.problems == ()
    assert loaded.settings is not None
    found = RunInputs(
        files=Archive(path=Path("files.tar.gz"), sha256="0a1b", count=1, size=1),
        certificates="-----BEGIN CERTIFICATE-----",
        resize_requests={"np-1": ResizeRequestSpec(count=1, run_seconds=600)},
    )
    kind = registry.of(loaded.settings)
    spec = kind.spec(loaded.settings)
    if spec.makes_firewall:
        spec = dataclasses.replace(spec, firewall_rules=(RULE,))
    return dict(deploy(kind, spec, locate(loaded.settings), found).variables)


def _attributes(value: Any, declared: str) -> Iterator[str]:
    """Every attribute of a variable's value, at whatever depth; the keys of maps are no such."""
    if isinstance(value, dict):
        is_map = declared.startswith("${map(")
        if not is_map:
            yield from value
        for inner in value.values():
            yield from _attributes(inner, "" if is_map else declared)
    elif isinstance(value, list):
        for inner in value:
            yield from _attributes(inner, "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: "+".join(case) or "mandatory")
def test_python_hands_over_exactly_what_terraform_declares(case: dict[str, str]) -> None:
    declared = _declared("mig")
    made = _made(case)
    assert made.keys() == declared.keys()
    for name, value in made.items():
        undeclared = set(_attributes(value, declared[name])) - _names(declared[name])
        assert undeclared == set(), f"of {name}"


def test_terraform_declares_nothing_that_python_never_hands_over() -> None:
    declared = _declared("mig")
    made = [_made(case) for case in CASES]
    for name, words in declared.items():
        handed_over = {key for one in made for key in _attributes(one[name], words)}
        assert _names(words) - handed_over == set(), f"of {name}"
