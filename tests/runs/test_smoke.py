"""`make test-google`, rehearsed: all of it, against a Google that is not quite as simulated."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from rehearsal import inventory, session
from rehearsal.cloud.store import Database
from smoke import __main__ as smoke

PROJECT = ["--project", "my-project", "--zone", "us-central1-a", "--rehearse"]


def _otherwise(method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
    """Google as it is not simulated: a field, a word of a closed set, a status."""
    if method == "GET" and "/global/networks/" in path and status == 200:
        document: dict[str, Any] = json.loads(body) | {"newAtGoogle": "yes"}
        document["routingConfig"]["routingMode"] = "GLOBAL"
        return status, json.dumps(document).encode()
    if method == "DELETE" and path.startswith("/storage/v1/b/") and "/o/" not in path:
        return 200, b""
    return status, body


@pytest.mark.slow(
    sibling="tests/unit/smoke/test_recorder.py"
    "::test_what_google_answers_otherwise_is_found_and_no_token_is_written"
)
@pytest.mark.timeout(1200)
def test_the_smoke_test_makes_moves_tests_and_removes_everything_and_names_each_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "report"
    asked = smoke.options([*PROJECT, "--folder", str(folder)])
    code = smoke.run(asked, os.environ, _otherwise)
    said = capsys.readouterr().err
    assert code == 0, said

    report = json.loads((folder / "report.json").read_text())
    assert report["done"], report
    assert len(report["steps"]) == 28
    assert (report["left"], report["not_listed"]) == ([], [])
    found = {(it["kind"], it["method"], it["field"]) for it in report["differences"]}
    assert found == {
        ("fields that only Google has", "compute.networks.get", "newAtGoogle"),
        ("words of a closed set", "compute.networks.get", "routingConfig.routingMode"),
        ("status", "storage.buckets.delete", ""),
    }
    page = (folder / "report.md").read_text()
    assert "| compute.networks.get | newAtGoogle | there |" in page

    with Database(folder / session.DATABASE).transaction() as store:
        assert [
            it for it in inventory.resources(store, time.time()) if asked.place.prefix in it
        ] == []
    for file in folder.rglob("*.jsonl"):
        text = file.read_text()
        assert "ya29.rehearsal" not in text
        assert "terraform_version" not in text  # as each state has it
