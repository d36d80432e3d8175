"""Terraform in a copy of `terraform/`, with the stand-in for the google provider."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision import terraform as driver
from provision.errors import TerraformError
from rehearsal.provider import mirror
from tests import attached
from tests.running import ran

SOURCES = Path(__file__).parents[2] / "terraform"


@dataclass(frozen=True)
class Terraform:
    """Terraform's command, for directories of one copy of `terraform/`."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)  # all that Terraform sees of the environment
    _initialised: set[str] = field(default_factory=set, repr=False)
    _tested: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict, repr=False)

    def run(
        self, directory: str, *arguments: str, also: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Terraform in a directory of the copy; it may fail."""
        return ran(
            [*self.command, *arguments],
            cwd=self.folder / directory,
            env={**self.environment, **(also or {})},
            stdin=subprocess.DEVNULL,
        )

    def init(self, directory: str) -> None:
        """Initialise a directory once."""
        if directory in self._initialised:
            return
        done = self.run(directory, "init", "-input=false", "-no-color")
        assert done.returncode == 0, done.stderr
        self._initialised.add(directory)

    def copy(self, directory: str, name: str) -> str:
        """Copy a directory beside itself, so that its relative paths stay true."""
        beside = (Path(directory).parent / name).as_posix()
        shutil.copytree(self.folder / directory, self.folder / beside, symlinks=True)
        if directory in self._initialised:
            self._initialised.add(beside)
        return beside

    def test(self, directory: str, file: str) -> list[dict[str, Any]]:
        """The messages of one run of a test file, verbose; run once, however often asked."""
        if (directory, file) not in self._tested:
            self.init(directory)
            done = self.run(directory, "test", "-json", "-verbose", f"-filter=tests/{file}")
            messages = [json.loads(line) for line in done.stdout.splitlines()]
            self._tested[directory, file] = messages
        return self._tested[directory, file]


def _environment(config: Path) -> dict[str, str]:
    """What is ours, less whatever would change what Terraform does."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TF_", "GOOGLE_", "CLOUDSDK_", "REHEARSAL_"))
    }
    return {
        **inherited,
        "CHECKPOINT_DISABLE": "1",
        "TF_CLI_CONFIG_FILE": str(config),
        "TF_IN_AUTOMATION": "1",
    }


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terraform]:
    try:
        binary = driver.find(os.environ)
    except TerraformError as error:
        pytest.skip(f"the layer tests/terraform did not run: {error}")
    folder = tmp_path_factory.mktemp("terraform")
    config = mirror.install(folder / "cli", sys.executable)
    copy = shutil.copytree(
        SOURCES, folder / "sources", ignore=shutil.ignore_patterns(".terraform", "*.tfstate*")
    )
    environment = _environment(config)
    with attached.served(environment) as reattach:
        yield Terraform(tuple(binary.argv), copy, environment | reattach)


@pytest.fixture(scope="session")
def made(terraform: Terraform) -> list[dict[str, Any]]:
    """States and provider's schemas of clusters that together have all that `mig` can make."""
    messages = terraform.test("mig", "cluster.tftest.hcl")
    states = {
        message["@testrun"]: message["test_state"]
        for message in messages
        if message["type"] == "test_state"
    }
    return [
        states["a_cluster_with_everything_tells_its_shares_requests_and_dashboard"],
        states["vms_close_together_by_a_reservation_have_no_requests"],
    ]


@pytest.fixture(scope="session")
def resources(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The resources of `made`, of all modules."""
    found = {
        resource["address"]: resource
        for state in made
        for module in state["root_module"]["child_modules"]
        for resource in module.get("resources", [])
        if resource["mode"] == "managed"
    }
    return list(found.values())
