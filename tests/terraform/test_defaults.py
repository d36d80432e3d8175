"""A default that stands in `terraform/` is the one that the program has, and stands there once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provision import intake
from provision.deployment.deployment import RunInputs
from provision.deployment.kind import deploy
from provision.kinds import registry
from provision.state.location import locate
from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
WHO = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
L4 = {"type": "nvidia-l4", "count": 1}
POOL = {"machine_type": "g2-standard-8", "gpu": L4}

MADE_OF_OTHERS = {"cluster_id", "marker", "region", "state_folder"}
"""What the tool always says, and a root's code makes of other variables where it is null."""


@dataclass(frozen=True)
class Root:
    """The least that a root is told of one machine with an L4, and what the tool is told of it."""

    name: str
    values: dict[str, Any]
    settings: dict[str, str]


MIG = Root(
    "mig",
    {
        "group": {"machine_type": "g2-standard-8"},
        "startup": {"gpus": {"count": 1, "accelerator": "nvidia-l4"}},
    },
    {},
)
GKE = Root("gke", {"node_pools": {"np-nodepool-1": POOL}}, {"ORCHESTRATOR_TYPE": "gke"})


def _evaluated(
    terraform: Terraform, folder: Path, source: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """All variables of a root or module as its types make them of these values."""
    folder.mkdir()
    shutil.copy(SOURCES / source / "variables.tf", folder)
    names = re.findall(r'^variable "(\w+)"', (folder / "variables.tf").read_text(), re.MULTILINE)
    known = {name: value for name, value in values.items() if name in names}
    (folder / "some.auto.tfvars.json").write_text(json.dumps(known))
    words = ", ".join(f"{name} = var.{name}" for name in names)
    done = subprocess.run(
        [*terraform.command, "console"],
        cwd=folder,
        env=dict(terraform.environment),
        input=f"nonsensitive(jsonencode({{{words}}}))\n",
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(json.loads(done.stdout))
    return found


def _least(terraform: Terraform, folder: Path, root: Root) -> dict[str, Any]:
    return _evaluated(terraform, folder, root.name, WHO | root.values)


@pytest.mark.parametrize("root", [MIG, GKE], ids=lambda root: root.name)
def test_what_a_root_is_not_told_is_what_the_program_would_tell_it(
    terraform: Terraform, tmp_path: Path, root: Root
) -> None:
    asked = {name.upper(): value for name, value in WHO.items()} | root.settings
    settings = intake.load({"ACTION": "Plan", "VM_TYPE": "g2-standard-8", **asked}).settings
    assert settings is not None
    kind = registry.of(settings)
    told = deploy(kind, kind.spec(settings), locate(settings), RunInputs()).variables

    least = _least(terraform, tmp_path / "least", root)
    full = _evaluated(terraform, tmp_path / "full", root.name, told)

    assert {name for name, value in least.items() if value is None} - MADE_OF_OTHERS == {
        name for name, value in full.items() if value is None
    }
    assert _unsaid(full, least) == []


def _unsaid(full: Any, least: Any, path: str = "") -> list[str]:
    """Where the two differ, but for what is null because the root's code makes it of others."""
    if isinstance(full, dict) and isinstance(least, dict):
        return [
            different
            for key in full.keys() | least.keys()
            if key not in MADE_OF_OTHERS
            for different in _unsaid(full.get(key), least.get(key), f"{path}.{key}")
        ]
    made = path.endswith((".external_ip", ".location", ".zone")) and least is None
    return [] if full == least or made else [f"{path}: the program {full}, the root {least}"]


MODULES: dict[str, tuple[Root, dict[str, Any], list[str]]] = {
    "gpu-mig": (
        MIG,
        {
            **MIG.values,
            "image": {"project": "images", "family": "pytorch"},
            "interfaces": [],
            "service_account_email": "",
        },
        ["boot_disk", "capacity"],
    ),
    "startup": (MIG, MIG.values, ["startup"]),
    "gke-cluster": (
        GKE,
        {
            **dict.fromkeys(("network", "subnetwork"), ""),
            **dict.fromkeys(("node_account_email", "workload_account_email"), ""),
            "cluster": {"location": "us-central1"},
            "system_pool": {"zone": WHO["zone"]},
        },
        ["cluster", "system_pool"],
    ),
    "gke-nodepool": (
        GKE,
        {
            "cluster": {
                "location": "us-central1",
                **dict.fromkeys(("name", "version", "release_channel"), ""),
            },
            "cluster_id": "np",
            "name": "np-nodepool-1",
            "pool": {**POOL, "zone": WHO["zone"]},
            "service_account_email": "",
        },
        ["pool"],
    ),
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_alone_has_the_defaults_of_the_root(
    terraform: Terraform, tmp_path: Path, module: str
) -> None:
    root, given, same = MODULES[module]
    least = _least(terraform, tmp_path / "root", root)
    least["pool"] = least.get("node_pools", {}).get("np-nodepool-1")

    alone = _evaluated(terraform, tmp_path / "module", f"modules/{module}", WHO | given)

    for name in same:
        one, other = alone[name], least[name]
        both = one.keys() & other.keys()
        assert _unsaid({key: one[key] for key in both}, {key: other[key] for key in both}) == []
