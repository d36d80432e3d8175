"""Attempts at the user's command: when the next one is due, and what a later boot makes of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from aiinfra_vm import attempts
from aiinfra_vm.attempts import History, Restart, State
from hypothesis import given
from hypothesis import strategies as st


def _after(*codes: int, lasting: float = 1.0) -> History:
    """Attempts of one boot that each took some seconds."""
    history, now = History(), 1000.0
    for code in codes:
        history = history.begun("boot-1", now).ended_with(code, now + lasting)
        now += 1000
    return history


def test_pauses_double_up_to_five_minutes_and_begin_anew_after_an_attempt_that_lasted() -> None:
    assert [_after(*[1] * failures).pause for failures in (1, 2, 3, 5, 6, 7, 5000)] == [
        10, 20, 40, 160, 320, 320, 320,
    ]  # fmt: skip
    assert _after(1, 1, 1, lasting=3600).pause == 10
    assert _after(1, 1, 1, lasting=3600).failures == 1


@given(ends=st.lists(st.integers(10**9, 10**9 + 300), min_size=2), quick=st.integers(1, 9))
def test_vms_whose_attempts_ended_at_different_times_begin_the_next_at_whole_pauses(
    ends: list[int], quick: int
) -> None:
    vms = [replace(_after(1), began=end - 30, ended=end, quick=quick) for end in ends]
    pause = vms[0].pause
    for vm in vms:
        assert 0.5 * pause <= vm.due - vm.ended <= 1.5 * pause
        assert vm.due % pause == 0
    # Whoever failed less often begins at each of those moments, too.
    for sooner in range(1, quick):
        assert pause % replace(vms[0], quick=sooner).pause == 0


def test_a_success_that_ends_soon_is_begun_again_with_pauses_that_grow_too() -> None:
    assert (_after(0, 0, 0).pause, _after(0, 0, 0).failures) == (40, 0)


def test_within_a_boot_it_is_begun_again_as_asked_and_after_a_notice_never() -> None:
    for code, again in ((0, {Restart.ALWAYS}), (1, {Restart.ALWAYS, Restart.ON_FAILURE})):
        assert {restart for restart in Restart if _after(code).goes_on(restart)} == again
    stopped = History().begun("boot-1", 0).stopped(0, "preemption", 9)
    assert not any(stopped.goes_on(restart) for restart in Restart)


LAST = {
    "none": History(),
    "cut_off": History().begun("boot-1", 0),
    "stopped": History().begun("boot-1", 0).stopped(143, "the VM goes down", 9),
    "failed": _after(3),
    "done": _after(0),
}


def test_a_later_boot_begins_it_again_as_asked() -> None:
    for restart, begins in {
        Restart.NEVER: {"none"},
        Restart.ON_FAILURE: {"none", "cut_off", "stopped", "failed"},
        Restart.ALWAYS: set(LAST),
    }.items():
        refusals = {name: last.refusal(restart, "boot-2") for name, last in LAST.items()}
        assert {name for name, refusal in refusals.items() if not refusal} == begins
    # What runs in this boot is left alone.
    assert History().begun("boot-1", 0).refusal(Restart.NEVER, "boot-1") == ""


def test_a_new_boot_begins_without_failures() -> None:
    history = _after(1, 1).begun("boot-2", 9000)
    assert (history.failures, history.quick, history.attempt) == (0, 0, 3)


def test_what_is_kept_is_what_was_known(tmp_path: Path) -> None:
    assert attempts.load(tmp_path / "none").state is State.NONE
    for history in LAST.values():
        attempts.save(tmp_path / "command.json", history)
        assert attempts.load(tmp_path / "command.json") == history
        assert [file.name for file in tmp_path.iterdir()] == ["command.json"]


def test_on_a_full_disk_an_attempt_is_kept_in_the_room_that_the_file_has(tmp_path: Path) -> None:
    file, part = tmp_path / "command.json", tmp_path / "command.part"
    first, *others = LAST.values()
    attempts.save(file, first)
    for history in others:
        part.symlink_to("/dev/full")
        attempts.save(file, history)
        assert attempts.load(file) == history
        assert not part.is_symlink()

    file.unlink()
    part.symlink_to("/dev/full")
    with pytest.raises(FileNotFoundError):
        attempts.save(file, first)
