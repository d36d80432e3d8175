"""What the tests that run the image share: settings, options, and how a run speaks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import output_schema

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

    from tests.image.engine import Ended

SETTINGS = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
MANDATORY = "".join(f"{name}={value}\n" for name, value in SETTINGS.items())
OFFLINE = ("--network", "none")
CLOUD = "/var/lib/aiinfra/rehearsal"
"""Where the simulated cloud is kept in a container."""


def kept(volume: str, env_list: Path, *more: str) -> tuple[str, ...]:
    """Options of a run without a network whose simulated cloud is kept in a volume."""
    return ("-v", f"{volume}:{CLOUD}", "--env-file", str(env_list), *OFFLINE, *more)


def document(ended: Ended) -> dict[str, Any]:
    """What a run with `--output json` says."""
    found = json.loads(ended.out)
    assert isinstance(found, dict)
    assert found["exit_code"] == ended.code, ended.err
    output_schema.require(found)
    return found


def await_line(container: DockerContainer, part: str) -> str:
    """What the container has said, as soon as this is in it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        text = said(container)
        if part in text:
            return text
        wrapped = container.get_wrapped_container()
        wrapped.reload()
        assert wrapped.status == "running", text
        time.sleep(0.3)
    raise AssertionError(f"not said within two minutes: {part}\n{said(container)}")


def said(container: DockerContainer) -> str:
    """What the container has said, on stdout and stderr."""
    return b"".join(container.get_logs()).decode("utf-8", "replace")
