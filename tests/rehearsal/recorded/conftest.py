"""Plays what was recorded: real Terraform, the stand-in provider, a proxy, a simulated cloud."""

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from provision import terraform
from rehearsal.cloud.server import Cloud
from rehearsal.provider import given, mirror
from tests import attached, real_provider
from tests.rehearsal.recorded.proxy import SERVICES, Proxy, Row
from tests.running import ran

HERE = Path(__file__).parent

PROVIDER_BLOCK = """\
terraform {
  required_providers {
    google = { source = "hashicorp/google", version = "7.45.0" }
  }
}
provider "google" {
  project = "proj-a1"
  region  = "us-central1"
  zone    = "us-central1-a"
}
"""

# How fast the provider's time runs: batches need some room to gather, all else is waiting.
PROVIDER_RATE = "0.05"
# The recording's cloud was done with everything at once.
CLOUD_RATE = "0"


class Player:
    """A folder in which Terraform runs a story against a cloud."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self._proxy = proxy
        self._work = folder / "work"
        self._work.mkdir()
        endpoints = {
            variable: f"{proxy.base_url}{prefix}{version}"
            for prefix, variable, version in SERVICES.values()
        }
        plugin = folder / "plugin"
        provider = given.find(os.environ, plugin)
        config = mirror.install(plugin, sys.executable)
        if provider is not None:
            config = mirror.install_given(plugin, provider.binary, provider.sha256)
            # Whose its token is, it asks Google itself; this proxy takes the question nowhere.
            endpoints |= {"HTTPS_PROXY": proxy.base_url}
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "token",
            "CLOUD_CLOCK_RATE": PROVIDER_RATE,
            **endpoints,
        }

    @contextlib.contextmanager
    def ready(self) -> Iterator[Self]:
        """With a provider that serves as long as this does; one from outside Terraform starts."""
        if real_provider.in_use():
            yield self
            return
        with attached.served(dict(self._environ)) as reattach:
            self._environ |= reattach
            yield self

    def play(self, story: Row) -> dict[str, list[Row]]:
        """All phases of a story; a plan after each change is empty."""
        for name, text in story.get("files", {}).items():
            (self._work / name).write_text(text)
        for name, size in story.get("zeros", {}).items():
            (self._work / name).write_bytes(bytes(size))
        if {"files", "zeros"} & story.keys():
            # Their paths are relative to where Terraform works, and so must be the provider.
            self._environ |= attached.NOT_ATTACHED
        if name := story.get("bucket"):
            _call("POST", f"{self._proxy.base_url}/storage/v1/b?project=proj-a1", {"name": name})
            self._proxy.take()
        self._write(story["hcl"])
        self._terraform("init", "-input=false")
        sent = {}
        sent["plan"] = self._terraform("plan", "-out=first", "-input=false")
        sent["apply"] = self._terraform("apply", "-input=false", "first")
        sent["refresh"] = self._terraform("plan", "-detailed-exitcode", "-input=false")
        if "hcl_update" in story:
            self._write(story["hcl_update"])
            sent["update"] = self._terraform("apply", "-auto-approve", "-input=false")
            self._terraform("plan", "-detailed-exitcode", "-input=false")
        sent["destroy"] = self._terraform("destroy", "-auto-approve", "-input=false")
        return sent

    def endure(self, failure: Row) -> list[Row]:
        """All steps of a recorded failure, disturbed as they were when they were recorded.

        Returns of each step: its exit code, what was sent, and the error that Terraform told.
        """
        self._write(failure["hcl"])
        self._terraform("init", "-input=false")
        return [self._step(step) for step in failure["steps"]]

    def _step(self, step: Row) -> Row:
        self._proxy.disturb(step.get("faults"), step.get("polls"))
        option = "-detailed-exitcode" if step["command"] == "plan" else "-auto-approve"
        done = self._start(step["command"], option, "-input=false")
        told = " ".join(re.sub("[╷│╵]", "", done.stderr).split())
        _, _, error = told.partition("Error: ")
        return {
            "exit_code": done.returncode,
            "sent": self._proxy.take(),
            "error": error.partition(" with google_")[0],
        }

    def _write(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        (self._work / "main.tf").write_text(f"{PROVIDER_BLOCK}{text}\n")

    def _terraform(self, *arguments: str) -> list[Row]:
        done = self._start(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return self._proxy.take()

    def _start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return ran(
            [*terraform.find(os.environ).argv, *arguments, "-no-color"],
            cwd=self._work,
            env=self._environ,
        )


def _call(method: str, url: str, body: Row | None = None) -> Row:
    request = urllib.request.Request(  # noqa: S310 - loopback
        url,
        data=json.dumps(body or {}).encode() if method == "POST" else None,
        method=method,
        headers={"Authorization": "Bearer token", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - loopback
        document: Row = json.load(answer)
    return document


def only_compute(base_url: str) -> None:
    """The project of the recording had Compute Engine switched on, and nothing else."""
    services = f"{base_url}/serviceusage/v1/projects/proj-a1/services"
    listed = _call("GET", f"{services}?filter=state:ENABLED")
    for name in (it["name"].rpartition("/")[2] for it in listed.get("services", [])):
        if name != "compute.googleapis.com":
            _call("POST", f"{services}/{name}:disable")
    _call("POST", f"{services}/compute.googleapis.com:enable")


@pytest.fixture
def player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Player]:
    """Plays stories against the simulated cloud."""
    monkeypatch.setenv("CLOUD_CLOCK_RATE", CLOUD_RATE)
    # The recordings were made in a cloud that had every machine type in every zone.
    started = Cloud(database=tmp_path / "cloud.db", scenario="everywhere")
    with started as cloud, Proxy(cloud.base_url) as proxy:
        only_compute(cloud.base_url)
        with Player(tmp_path, proxy).ready() as player:
            yield player


@pytest.fixture
def recording() -> Callable[[str, str], Row]:
    """Reads what was recorded, by its kind and its name."""

    def read(kind: str, name: str) -> Row:
        document: Row = json.loads((HERE / kind / f"{name}.json").read_text())
        return document

    return read
