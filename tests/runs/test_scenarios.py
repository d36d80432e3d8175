"""Each scenario: its exit code, what a person reads, and the way out that it names."""

import re
from pathlib import Path

import pytest

from rehearsal.inventory import stays
from tests.conftest import Golden
from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.reading import normal

UNCHECKED = {"quota": "quota", "forbidden": "permissions"}
"""Which check to skip to see how it goes when Google refuses only what is under way."""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("stockout", 7),
        ("quota", 4),
        ("quota-unchecked", 7),
        ("forbidden", 4),
        ("forbidden-unchecked", 6),
        ("lock-held", 5),
        ("expired", 3),
    ],
)
def test_a_create_fails_with_its_code_says_what_to_do_and_goes_on_when_the_trouble_is_over(
    rehearse: Rehearse, golden: Golden, goldens: Path, name: str, code: int
) -> None:
    scenario = name.removesuffix("-unchecked")
    skipped = {} if name == scenario else {"SKIP_CHECKS": UNCHECKED[scenario]}
    refused = rehearse(scenario=scenario).run("Create", **skipped)
    assert refused.code == code
    golden.check(goldens / f"{name}.txt", normal(refused.said))
    ended = rehearse().run("Create")
    assert ended.code == 0, ended.said
    assert [vm["status"] for vm in ended.document["connection"]["vms"]] == ["RUNNING"]


def test_a_start_up_that_fails_names_vm_and_step_and_still_says_how_to_connect(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    rehearsal = rehearse(scenario="startup-fails")
    settings = {"INSTANCE_COUNT": "2", "STARTUP_COMMAND": "python3 train.py"}
    failed = rehearsal.run("Create", **settings)
    assert failed.code == 8
    golden.check(goldens / "startup-fails.txt", normal(failed.said))
    assert len(failed.document["connection"]["vms"]) == 2
    status = rehearsal.run("Status").document["status"]
    steps = sorted((vm["startup"]["state"], vm["startup"].get("step")) for vm in status["vms"])
    assert steps == [("done", None), ("failed", "command")]
    assert rehearsal.run("Create", **settings).code == 8
    tested = rehearsal.run("Test")
    assert tested.code == 0, tested.said


def test_a_gpu_that_is_missing_fails_the_test_by_the_vms_name(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    rehearsal = rehearse(scenario="startup-fails")
    assert rehearsal.run("Create").code == 8
    tested = rehearsal.run("Test")
    assert tested.code == 8
    golden.check(goldens / "gpu-check.txt", normal(tested.said))


@pytest.mark.slow(
    sibling="::test_a_create_fails_with_its_code_says_what_to_do_and_goes_on_when_the_trouble_is_over"
)
def test_a_group_without_vms_is_kept_and_goes_with_destroy(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="quota")
    assert rehearsal.run("Create", SKIP_CHECKS="quota").code == 7
    assert any("instanceGroupManagers" in line for line in rehearsal.resources())
    again = rehearsal.run("Create", SKIP_CHECKS="quota")
    assert again.code == 7
    assert (again.problem["code"], again.problem["retryable"]) == ("quota-exceeded", False)
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.slow(
    sibling="::test_a_create_fails_with_its_code_says_what_to_do_and_goes_on_when_the_trouble_is_over"
)
def test_a_stockout_is_told_at_the_first_look_with_a_zone_that_has_machines(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="stockout")
    refused = rehearsal.run("Create")
    looks = [r for r in rehearsal.requests() if r["path"].endswith("/listManagedInstances")]
    assert len(looks) == 1
    match = re.search(r"set ZONE=([\w-]+),", refused.problem["fix"])
    assert match is not None
    assert (refused.problem["code"], refused.problem["retryable"]) == ("stock-out", True)
    assert refused.problem["alternatives"]["zones"][0] == match[1]
    moved = rehearsal.run("Create", "--yes", ZONE=match[1])
    assert moved.code == 0, moved.said
    (vm,) = moved.document["connection"]["vms"]
    assert f"--zone {match[1]}" in vm["ssh"]


def test_a_destroy_respects_the_lock_and_goes_on_once_it_is_released(standing: Rehearse) -> None:
    rehearsal = standing(scenario="lock-held")
    before = _live(rehearsal)
    held = rehearsal.run("Destroy")
    assert held.code == 5
    assert _live(rehearsal) == before
    own_id = held.problem["fix"].rpartition(" ")[2]
    ended = rehearsal.run("Destroy", "--break-lock", own_id)
    assert ended.code == 0, ended.said


def _live(rehearsal: Rehearsal) -> list[str]:
    """What exists, but for the lock and old versions of objects."""
    return [line for line in rehearsal.resources() if "tflock" not in line and not stays(line)]


def test_what_a_missing_permission_left_unmade_is_no_trouble_to_destroy(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="forbidden")
    assert rehearsal.run("Create", SKIP_CHECKS="permissions").code == 6
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.slow(sibling="::test_what_a_missing_permission_left_unmade_is_no_trouble_to_destroy")
def test_a_bad_day_loses_nothing(rehearse: Rehearse) -> None:
    # "slow" makes this a tenth of a second of ours for ten seconds of the cloud's.
    rehearsal = rehearse(rate=0.001, scenario="flaky,slow")
    for action in ("Create", "Destroy"):
        for _ in range(4):
            ended = rehearsal.run(action)
            if ended.code == 0:
                break
            # Google failed for good, or an answer was lost: said so, and to be gone on with.
            assert ended.code in (4, 5, 6, 8), ended.said
            assert ended.problem["fix"]
        assert ended.code == 0, ended.said
    assert [line for line in rehearsal.resources() if not stays(line)] == []
