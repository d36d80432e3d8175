"""Two machines at work on one deployment: no state is lost, and nobody says done of what is not."""

import itertools

import pytest

from rehearsal.inventory import stays
from tests.chaos import processes
from tests.forked import Started
from tests.runs.conftest import Ended, Rehearsal, Rehearse

pytestmark = pytest.mark.skipif(
    not processes.PROC.is_dir(), reason="another machine is made of Linux's namespaces"
)

ZONES = {"Create": "us-central1-a", "Destroy": "us-central1-a", "Move": "us-central1-f"}
LOCKED = 5
FAILED = {6, 8}
"""Terraform failed, or machines are gone: what another machine has ended under a run."""
SLOW = pytest.mark.slow(
    sibling="::test_what_another_machine_does_in_the_middle_of_a_run_is_neither_lost_nor_said_in_vain"
)


_LOCK = "POST /upload/**/default.tflock: hold times=1"
_UNLOCK = "DELETE /storage/**/default.tflock: hold times=1"
_RECORD = "POST /upload/**/deployment.json: hold times=1"
MOMENTS = {
    ("Destroy", "deletes_the_state"): "DELETE /storage/**/default.tfstate: hold times=1",
    ("Destroy", "deletes_the_record"): "DELETE /storage/**/deployment.json: hold times=1",
    ("Destroy", "deletes_the_template"): "DELETE **/instanceTemplates/*: hold times=1",
    # What it has looked at and shown may be another's by the time that it has the lock.
    ("Destroy", "takes_the_lock"): _LOCK,
    ("Destroy", "releases_the_lock"): _UNLOCK,
    ("Move", "deletes_the_group"): "DELETE **/instanceGroupManagers/*: hold times=1",
    ("Move", "takes_the_lock"): _LOCK,
    ("Move", "releases_the_lock"): _UNLOCK,
    ("Move", "writes_the_record"): _RECORD,
    ("Create", "takes_the_lock"): _LOCK,
    ("Create", "releases_the_lock"): _UNLOCK,
    ("Create", "writes_the_record"): f"{_RECORD} after=1",
}
"""A run, and a moment of it -> what holds it there."""
QUICK = ("deletes_the_state", "Create")


@pytest.mark.parametrize(
    ("first", "moment", "second"),
    [
        pytest.param(
            first,
            moment,
            second,
            id=f"{first}-{moment}-{second}".lower(),
            marks=[] if (moment, second) == QUICK else [SLOW],
        )
        for (first, moment), second in itertools.product(MOMENTS, ZONES)
    ],
)
def test_what_another_machine_does_in_the_middle_of_a_run_is_neither_lost_nor_said_in_vain(
    standing: Rehearse, rehearse: Rehearse, first: str, moment: str, second: str
) -> None:
    rehearsal = rehearse() if first == "Create" else standing()
    assert rehearsal.cloud is not None
    fault = rehearsal.cloud.faults.add(MOMENTS[first, moment])
    held = _start(rehearsal, first)
    rehearsal.cloud.faults.wait(fault)
    other = rehearsal.finish(_start(rehearsal.elsewhere(), second))
    rehearsal.cloud.faults.end(fault)
    _judge(rehearsal, (first, rehearsal.finish(held)), (second, other))


@SLOW
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations_with_replacement(ZONES, 2))
)
def test_of_two_machines_at_once_with_slow_deletes_neither_loses_or_feigns_anything(
    standing: Rehearse, first: str, second: str
) -> None:
    rehearsal = standing()
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add("DELETE **: delay 0.3")
    both = _start(rehearsal, first), _start(rehearsal.elsewhere(), second)
    ended = [rehearsal.finish(one) for one in both]
    rehearsal.cloud.faults.end()
    _judge(rehearsal, (first, ended[0]), (second, ended[1]))


def _start(rehearsal: Rehearsal, action: str) -> Started:
    verb = "Create" if action == "Move" else action
    return rehearsal.start(verb, "--yes", ZONE=ZONES[action])


def _judge(rehearsal: Rehearsal, *runs: tuple[str, Ended]) -> None:
    """Hold what both said against the cloud and the state."""
    told = [(action, ended.code) for action, ended in runs]
    said = "\n".join(ended.said for _, ended in runs)
    done = [action for action, code in told if code == 0]
    groups = [line for line in rehearsal.resources() if "/instanceGroupManagers/" in line]
    assert {code for _, code in told} <= {0, LOCKED, *FAILED}, said
    assert done, said
    if all(code in (0, LOCKED) for _, code in told):
        lives = [f"zones/{ZONES[action]}/" for action in done if action != "Destroy"]
        if groups:
            assert any(zone in groups[0] for zone in lives), f"false 0: {told} {groups}\n{said}"
        else:
            assert "Destroy" in done, f"false 0: {told}, and nothing lives\n{said}"
    if groups:
        # A state that was lost would be made again, of what is found: that is a change.
        zone = groups[0].split("/zones/")[1].split("/")[0]
        again = rehearsal.run("Plan", ZONE=zone)
        assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}, again.said
    assert rehearsal.run("Destroy", "--yes").code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []
