"""The waist: what Python hands over is what the Terraform root declares, in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hcl2
import pytest

from provision import deployment, settings

ROOTS = Path(__file__).parents[2] / "terraform"
CASES = [
    {},
    {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "2"},
    {"NETWORK_CONFIG": "new_network", "SERVICE_ACCOUNT": "default", "IMAGE_NAME": "mine"},
    {"NETWORK_CONFIG": "multi_nic_network", "VM_TYPE": "a3-ultragpu-8g"},
    {"LABELS": "a=b", "METADATA": "a=b", "SERVICE_ACCOUNT": "me@p.iam.gserviceaccount.com"},
]


def _declared(root: str) -> dict[str, str]:
    """Variable -> type, as written."""
    with (ROOTS / root / "variables.tf").open() as file:
        blocks = hcl2.load(file)["variable"]
    return {
        name.strip('"'): str(about["type"]) for block in blocks for name, about in block.items()
    }


def _made(case: dict[str, str]) -> dict[str, Any]:
    mandatory = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
    loaded = settings.load({"ACTION": "Plan", **mandatory, **case})
    assert loaded.problems == ()
    assert loaded.settings is not None
    return deployment.make(loaded.settings).variables


@pytest.mark.parametrize("case", CASES, ids=lambda case: "+".join(case) or "mandatory")
def test_python_hands_over_exactly_what_terraform_declares(case: dict[str, str]) -> None:
    declared = _declared("mig")
    made = _made(case)
    assert made.keys() == declared.keys()
    for name, value in made.items():
        if isinstance(value, dict) and declared[name].removeprefix("${").startswith("object"):
            for key in value:
                assert key in declared[name], f"{name}.{key} is not declared"
