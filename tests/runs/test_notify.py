"""NOTIFY: who does not look at the terminal hears what a run comes to, and keeps none waiting."""

import json
import time

from provision.documents.events import EventKind, Milestone
from tests import output_schema
from tests.receiver import PATH, receiver
from tests.runs.conftest import Rehearsal, Rehearse


def _kept(rehearsal: Rehearsal) -> str:
    """All that the cloud keeps, the contents of objects too, and what the run has said."""
    files = [it for it in rehearsal.folder.rglob("*") if it.is_file() and it.suffix != ".list"]
    return b"\n".join(it.read_bytes() for it in files).decode("utf-8", "replace")


def test_a_night_is_told_from_its_machines_to_its_end(rehearse: Rehearse) -> None:
    rehearsal = rehearse()
    (rehearsal.folder / "code").mkdir()
    copied = f"--copy={rehearsal.folder / 'code'}"
    with receiver() as server:
        ended = rehearsal.run(
            "Run", copied, "--create", "--destroy-after", behind=["--", "true"], NOTIFY=server.url
        )

    assert ended.code == 0
    assert ended.said.count("nothing is real or billed") == 1  # it asks Google several times
    told = [body for _, body in server.got]
    assert [it["milestone"] for it in told] == [
        *(Milestone.MACHINES, Milestone.READY, Milestone.JOB_BEGAN),
        *(Milestone.JOB_ENDED, Milestone.DESTROYED),
    ]
    for it in told:
        output_schema.require_line(it)
        assert it["text"].startswith("Rehearsal: np (my-project, us-central1-a): ")
    assert told[0]["words"] == "its machine runs"
    assert told[2]["fix"] == "aiinfra Logs true-1 --follow"
    assert told[3]["words"].startswith("true-1 succeeded; it ran ")
    assert told[4]["words"].startswith("the cluster is destroyed; it has cost at most $")
    assert ended.document["settings"]["NOTIFY"] == "***"
    assert PATH not in _kept(rehearsal)


def test_who_does_not_answer_changes_nothing_but_a_note(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="stockout")
    with receiver(status=404) as server:
        before = time.monotonic()
        started = rehearsal.start("Create", "--output", "ndjson", NOTIFY=server.url)
        assert started.ended(100) == 7
        assert time.monotonic() - before < 90

    (path, told), *more = server.got
    assert not more
    assert (path, told["milestone"]) == (f"/hook/{PATH}?token=1", Milestone.FAILED)
    assert "Create failed: ZONE us-central1-a has no" in told["text"]
    assert ". Next: run Create again" in told["text"]
    lines = [json.loads(it) for it in rehearsal.result(started).splitlines()]
    # Programs find it among the other events, whoever else is told.
    assert [it for it in lines if it["event"] == EventKind.MILESTONE] == [told]
    (note,) = [it for it in lines[-1]["notes"] if it.get("setting") == "NOTIFY"]
    assert note["why"] == "it answered 404"
    assert PATH not in _kept(rehearsal)
    assert "could not be told" in rehearsal.said(started)
