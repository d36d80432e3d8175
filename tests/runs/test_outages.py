"""Google does not answer, or somebody else does in its place: an outage is called one."""

import contextlib
import itertools
import json
from collections.abc import Iterator

import pytest
from google.cloud.storage import retry

from provision import cli
from tests.runs.conftest import Ended, Rehearsal
from tests.runs.outage import OUTAGES, saying, served

ACTIONS = ("Create", "Plan", "Validate", "Status", "Destroy", "Test")
NOT_SAID = ("does not exist", "may not", "permission", "othing to destroy", "no such", "not found")
CHECKED_BY_COMPUTE = {"zone", "machine-type", "accelerator", "image", "disk", "network", "names"}


@contextlib.contextmanager
def _out_of_order(rehearsal: Rehearsal, way: str, *services: str) -> Iterator[None]:
    """Put a server that is out of order in the place of some services; of all, if none is given."""
    with served(OUTAGES[way]) as url:
        before = dict(rehearsal.environ)
        for name in before:
            own = name.removeprefix("GOOGLE_").removesuffix("_CUSTOM_ENDPOINT")
            if name.endswith("_CUSTOM_ENDPOINT") and (not services or own in services):
                rehearsal.environ[name] = url
        yield
        rehearsal.environ.clear()
        rehearsal.environ.update(before)


def _is_an_outage(ended: Ended, code: int, *codes: str) -> None:
    assert ended.code == code, ended.said
    assert ended.document["ok"] is False
    problems = ended.document["problems"]
    assert {one["code"] for one in problems} <= {*codes}, problems
    assert all(one["retryable"] for one in problems)
    for problem in problems:
        told = f"{problem['what']} {problem['fix']}"
        assert not any(words in told for words in NOT_SAID), told
        assert "again" in problem["fix"]
    assert "othing to destroy" not in ended.said


@pytest.mark.parametrize(
    ("action", "way"), list(zip(ACTIONS, itertools.cycle(["500", "captive portal"]), strict=False))
)
def test_an_outage_of_all_apis_is_told_as_one_and_may_be_tried_again(
    rehearsal: Rehearsal, action: str, way: str
) -> None:
    with _out_of_order(rehearsal, way):
        ended = rehearsal.run(action)

    _is_an_outage(ended, 4, "unreachable")


@pytest.mark.slow(sibling="::test_an_outage_of_all_apis_is_told_as_one_and_may_be_tried_again")
@pytest.mark.parametrize(
    ("action", "way"), list(zip(itertools.cycle(["Plan", "Destroy"]), OUTAGES, strict=False))
)
def test_every_outage_is_told_as_one(rehearsal: Rehearsal, action: str, way: str) -> None:
    with _out_of_order(rehearsal, way):
        ended = rehearsal.run(action)

    _is_an_outage(ended, 4, "unreachable")


@pytest.mark.parametrize("way", ["500", "404 of a proxy"])
def test_a_destroy_without_a_state_does_not_take_an_outage_for_nothing_to_destroy(
    rehearsal: Rehearsal, way: str
) -> None:
    with _out_of_order(rehearsal, way, "COMPUTE"):
        ended = rehearsal.run("Destroy")

    _is_an_outage(ended, 4, "unreachable")


@pytest.mark.parametrize("way", ["429", "captive portal"])
def test_validate_fails_where_checks_could_not_be_made(rehearsal: Rehearsal, way: str) -> None:
    with _out_of_order(rehearsal, way, "COMPUTE"):
        ended = rehearsal.run("Validate")

    _is_an_outage(ended, 4, "unreachable")
    states = ended.document["online_checks"]
    unchecked = {name for name, state in states.items() if state == "unchecked"}
    assert unchecked >= CHECKED_BY_COMPUTE
    assert states["billing"] == states["apis"] == "passed"
    told = " ".join(one["what"] for one in ended.document["problems"])
    assert all(name in told for name in unchecked)
    assert any("billing" in note["what"] for note in ended.document["notes"])
    assert "the online checks passed" not in ended.said


@pytest.mark.parametrize("action", ["Create", "Plan"])
def test_what_could_not_be_checked_remains_a_note_of_others(
    rehearsal: Rehearsal, action: str
) -> None:
    with _out_of_order(rehearsal, "429", "CLOUD_BILLING"):
        ended = rehearsal.run(action)

    assert ended.code == 0, ended.said
    (note,) = [one for one in ended.document["notes"] if one["code"] == "not-checked"]
    assert note["what"] == "could not be checked: billing"
    assert ended.document["online_checks"]["billing"] == "unchecked"
    assert ended.document["online_checks"]["quota"] == "passed"


def test_a_check_that_is_not_allowed_fails_a_validate_until_it_is_skipped(
    rehearsal: Rehearsal,
) -> None:
    with served(saying(403, "The caller does not have permission")) as url:
        rehearsal.environ["GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT"] = url
        refused = rehearsal.run("Validate")
        skipped = rehearsal.run("Validate", SKIP_CHECKS="billing")

    assert refused.code == 4, refused.said
    assert refused.problem["what"] == "could not be checked: billing"
    assert not refused.problem["retryable"]
    assert "SKIP_CHECKS=billing" in refused.problem["fix"]
    assert skipped.code == 0, skipped.said
    assert rehearsal.writes() == []
    assert skipped.document["online_checks"]["billing"] == "skipped"


def test_a_check_that_fails_is_told_apart_from_those_that_pass(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Validate", GCS_MOUNT_LIST="not-there:/mnt/a")

    assert ended.code == 4
    states = ended.document["online_checks"]
    assert [name for name, state in states.items() if state == "failed"] == ["buckets"]
    assert set(states.values()) == {"failed", "passed"}


@pytest.mark.parametrize(
    ("action", "way"),
    [
        *itertools.product(ACTIONS, ["403 of a proxy", "404 of a proxy"]),
        ("Create", "500"),
        ("Destroy", "captive portal"),
    ],
)
def test_an_outage_of_cloud_storage_is_no_lack_of_rights_and_no_lack_of_a_deployment(
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    action: str,
    way: str,
) -> None:
    # Its client tries for two minutes. In this process, as a fork would not have the patch.
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_timeout", 0.1)
    own = {name: f"{value}" for name, value in rehearsal.settings.items()}
    with _out_of_order(rehearsal, way, "STORAGE"):
        code = cli.main([action, "--output", "json"], {**rehearsal.environ, **own})

    out, said = capsys.readouterr()
    _is_an_outage(Ended(code, json.loads(out), said), 5, "storage-failed")


def test_a_lock_that_is_gone_when_it_is_looked_at_is_taken_at_the_next_try(
    rehearsal: Rehearsal,
) -> None:
    assert rehearsal.cloud is not None
    taking = "POST /upload/storage/**/default.tflock: refuse 412"
    rehearsal.cloud.faults.add(f"{taking} times=1")
    created = rehearsal.run("Create")
    assert created.code == 0, created.said

    rehearsal.cloud.faults.add(taking)
    refused = rehearsal.run("Create")
    assert refused.code == 5, refused.said
    assert "nobody holds it" in refused.problem["what"]
    assert "--break-lock" not in refused.problem["fix"]
