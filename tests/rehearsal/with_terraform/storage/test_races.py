"""Several servers on one database: what one promised, the other keeps."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests


@contextlib.contextmanager
def _server(database: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "rehearsal.cloud", "--database", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["base_url"]
        finally:
            server.terminate()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[str, str]]:
    database = tmp_path / "cloud.sqlite"
    with _server(database) as one, _server(database) as two:
        yield one, two


def test_of_two_who_make_an_object_that_must_not_exist_one_wins(servers: tuple[str, str]) -> None:
    requests.post(
        f"{servers[0]}/storage/v1/b",
        params={"project": "proj-a1"},
        json={"name": "race"},
        timeout=600,
    ).raise_for_status()
    rounds = 20
    together = threading.Barrier(2)

    def contend(server: str) -> list[int]:
        codes = []
        with requests.Session() as session:
            for number in range(rounds):
                together.wait(timeout=600)
                answer = session.post(
                    f"{server}/upload/storage/v1/b/race/o",
                    params={"uploadType": "media", "name": f"l{number}", "ifGenerationMatch": "0"},
                    data=server,
                    timeout=600,
                )
                codes.append(answer.status_code)
        return codes

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(zip(*pool.map(contend, servers), strict=True))
    assert [sorted(outcome) for outcome in outcomes] == [[200, 412]] * rounds
