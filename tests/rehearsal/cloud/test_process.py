import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.running import ran

pytestmark = pytest.mark.loopback

NETWORKS = "compute/v1/projects/proj-a1/global/networks"


@contextmanager
def _serving(database: Path, *arguments: str, **options: Any) -> Iterator[tuple[Any, str]]:
    """A server process and its base URL."""
    command = [sys.executable, "-m", "rehearsal.cloud", "--database", str(database)]
    environ = {**os.environ, "CLOUD_CLOCK_RATE": "0"}
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, env=environ, text=True, **options
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["base_url"]
        finally:
            process.kill()


def _ask(base_url: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{base_url}/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer token"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - loopback
        document: dict[str, Any] = json.load(answer)
        return document


def _make(base_url: str, name: str) -> None:
    _ask(base_url, NETWORKS, {"name": name, "autoCreateSubnetworks": False})


def _names(base_url: str) -> set[str]:
    return {network["name"] for network in _ask(base_url, NETWORKS)["items"]}


def test_it_says_where_it_is_and_ends_on_sigterm(tmp_path: Path) -> None:
    with _serving(tmp_path / "db") as (process, base_url):
        assert _names(base_url) == {"default"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0


def test_it_ends_with_its_parents_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    descriptor = str(reading)
    with _serving(tmp_path / "db", "--exit-with-fd", descriptor, pass_fds=[reading]) as (
        process,
        base_url,
    ):
        os.close(reading)
        assert _names(base_url) == {"default"}
        os.close(writing)
        assert process.wait(600) == 0


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    with _serving(tmp_path / "db") as (process, base_url):
        _make(base_url, "kept")
        process.kill()
        process.wait(600)
    with _serving(tmp_path / "db") as (_, base_url):
        assert _names(base_url) == {"default", "kept"}


def test_two_servers_share_a_database(tmp_path: Path) -> None:
    with _serving(tmp_path / "db") as (_, one), _serving(tmp_path / "db") as (_, two):
        threads = [
            threading.Thread(target=_make, args=(base_url, f"{side}-{number}"))
            for side, base_url in (("one", one), ("two", two))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert _names(one) == _names(two)
        assert len(_names(one)) == 17
        ids = [network["id"] for network in _ask(one, NETWORKS)["items"]]
        assert len(set(ids)) == 17


def test_an_unknown_scenario_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rehearsal.cloud", "--database", "db"]
    done = ran(
        [*command, "--scenario", "storm"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1
    assert "there is no scenario 'storm'" in done.stderr
