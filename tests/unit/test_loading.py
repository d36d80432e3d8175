"""What a run loads: a package that it has no use for is time that everybody waits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal import session
from tests.unit.conftest import MANDATORY

ROOT = Path(__file__).parents[2]
# For Google, Terraform, Kubernetes, and what is said on the way to a result.
ONLINE = {
    *("google", "grpc", "requests", "tenacity", "urllib3"),
    *("hcl2", "lark", "python_terraform"),
    *("kubernetes", "yaml"),
    "rich",
}
# Of the program itself: what sends requests, packs a folder, or is in a report's page.
OURS = {
    *("provision.google.http", "provision.google.auth", "provision.google.refusals"),
    *("provision.files.archive", "provision.spec.topology", "provision.documents.checks"),
}
SETTINGS = {"dotenv", "pydantic", "pydantic_settings"}


def _loaded(*argv: str, **environ: str) -> set[str]:
    """The packages and modules that a run has loaded by its end."""
    code = f"""
import json, os, sys
from provision.cli import main
assert main({list(argv)!r}, {environ!r}) == 0
sys.stderr.write(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    return set(json.loads(done.stderr))


@pytest.mark.parametrize(
    "settings",
    [
        {"LABELS": "a=b", "METADATA": '{"a": "b"}'},
        {
            "ORCHESTRATOR_TYPE": "gke",
            "GKE_NODE_POOLS": "name=a,vm_type=a2-highgpu-1g,count=1",
            session.MANIFESTS_VARIABLE: str(session.MANIFESTS),
        },
    ],
    ids=["vms", "gke"],
)
def test_offline_only_what_judges_settings_is_loaded(settings: dict[str, str]) -> None:
    loaded = _loaded("Validate", "--offline", **MANDATORY, **settings)
    assert loaded & (ONLINE | SETTINGS | OURS) == SETTINGS


@pytest.mark.parametrize("asked", [("--version",), ("--help",), ("Create", "--help")])
def test_whoever_asks_what_there_is_waits_for_no_package(asked: tuple[str, ...]) -> None:
    assert not _loaded(*asked) & (ONLINE | SETTINGS | OURS)
