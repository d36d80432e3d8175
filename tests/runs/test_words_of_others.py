"""What a cloud, its VMs and other runs say never acts on the terminal of who reads it."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from rehearsal.cloud import wire
from rehearsal.cloud.compute import startup_told
from tests.runs import state_file
from tests.runs.conftest import Ended, Rehearsal, Rehearse

HOSTILE: Final = (
    "x\x1b]0;title\x07\x1b[2J\x1b[31m\x9b2K\r\x7f\u202e\u2066\u200b\nDestroyed 6 resources"
)
ACTS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")
RECORD: Final = "np-deployment/deployment.json"


def _acts(text: str) -> list[str]:
    return [ascii(it) for it in ACTS.findall(text)]


def _run(rehearsal: Rehearsal, action: str, *options: str, **given: str) -> Ended:
    """Run the program, and see that nothing that it writes acts on a terminal."""
    started = rehearsal.start(action, *options, **given)
    ended = rehearsal.finish(started)
    assert _acts(ended.said) == []
    assert _acts(rehearsal.result(started)) == []
    # Terraform's own text is in lines of Terraform's own.
    assert "--full" in options or "\nDestroyed 6 resources" not in ended.said
    assert r"x\x1b]0;title\x07\x1b[2J" in ended.said, ended.said
    return ended


def _kept(rehearsal: Rehearsal, suffix: str) -> list[str]:
    """The texts of the logs, or pages, that lie beside the state."""
    with state_file.client(rehearsal) as client:
        blobs = client.list_blobs("aiinfra-terraform-my-project", prefix="np-deployment/logs/")
        return [it.download_as_bytes().decode() for it in blobs if it.name.endswith(suffix)]


def test_what_a_vm_tells_of_its_start_up(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = startup_told.document

    def hostile(*its: Any) -> Any:
        document = told(*its)
        for step in (document or {}).get("steps", {}).values():
            if step["state"] == "failed":
                step["detail"] = HOSTILE
        return document

    monkeypatch.setattr(startup_told, "document", hostile)
    rehearsal = rehearse(scenario="startup-fails")
    page = tmp_path / "report.html"

    assert _run(rehearsal, "Create", "--report", str(page)).code == 8
    assert _acts(page.read_text()) == []
    assert r"\u202e" in page.read_text()
    _run(rehearsal, "Status")


@pytest.mark.slow(sibling="::test_what_a_vm_tells_of_its_start_up")
def test_with_which_words_google_refuses(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = wire.GoogleError.reply

    def hostile(self: wire.GoogleError) -> wire.Reply:
        if self.code == 403:
            self.message += f" {HOSTILE}"
        return reply(self)

    monkeypatch.setattr(wire.GoogleError, "reply", hostile)

    rehearsal = rehearse(scenario="forbidden")

    assert _run(rehearsal, "Create", SKIP_CHECKS="permissions").code == 6
    assert _run(rehearsal, "Create", "--full", SKIP_CHECKS="permissions").code == 6
    logs = _kept(rehearsal, ".log")
    assert [_acts(log) for log in logs] == [[], []]
    assert all(r"x\x1b]0;title" in log for log in logs)


def test_a_setting_of_a_record_that_no_run_can_have_written_is_left_out(standing: Rehearse) -> None:
    rehearsal = standing()
    with state_file.blob(rehearsal, RECORD) as record:
        document = json.loads(record.download_as_bytes())
        document["settings"] |= {"IMAGE_NAME": HOSTILE, "LABELS": {HOSTILE: HOSTILE}}
        record.upload_from_string(json.dumps(document))

    planned = rehearsal.run("Plan")

    assert planned.code == 0, planned.said
    assert "title" not in planned.said
