"""The lines of stages: what they say, and that no word is broken at any width."""

from typing import Any

import pytest

from provision.documents.events import WaitingEvent
from provision.documents.timeline import OnInterrupt, Stage, StageName, StageState
from provision.screens import progress
from provision.screens.layout import Look

WHEN = "2026-11-23T00:00:00.000Z"
WORDS = "0 of 2 nodes of ultra-queue-nodepool-1 run; us-central1-b has none now"


def _waiting(passed: float = 720, most: float | None = 7200, **more: Any) -> WaitingEvent:
    usual = {"stage": StageName.MACHINES, "on_interrupt": OnInterrupt.KEEPS, "words": WORDS}
    return WaitingEvent(time=WHEN, passed=passed, most=most, is_news=False, **usual | more)


def _ended(state: StageState, name: StageName = StageName.TERRAFORM) -> Stage:
    return Stage(name=name, state=state, began=WHEN, ended=WHEN, seconds=42.9, words="6 of 6")


@pytest.mark.parametrize("width", [80, 100])
def test_the_lines_of_a_wait_are_as_wide_as_the_screen_and_say_all_of_it(width: int) -> None:
    lines = [line.text for line in progress.sign_of_life(_waiting(), width)]
    assert max(map(len, lines)) <= width
    told = f"waits 0:12:00 of 2:00:00; {WORDS}; Ctrl-C keeps everything"
    assert " ".join(" ".join(lines).split()) == f"... machines {told}"


def test_a_sign_of_life_says_since_when_and_until_when() -> None:
    for passed, most, since in (
        (5, 300, "waits 0:00:05 of 0:05:00"),
        (3600, 7200, "waits 1:00:00 of 2:00:00"),
        (100_000, 604_800, "waits 27:46:40 of 168:00:00"),
        (61.9, None, "goes on for 1:01"),
        (4000, None, "goes on for 1:06:40"),
    ):
        (line, *_) = progress.sign_of_life(_waiting(passed, most, words=None), 100)
        assert line.text == f"  ...   machines        {since}; Ctrl-C keeps everything"
    # What is between two stages is this run's.
    (line,) = progress.sign_of_life(_waiting(60, None, stage=None, words=None), 100)
    assert line.text == "  ...   this run        goes on for 1:00; Ctrl-C keeps everything"


def test_news_have_their_time_at_the_right_end_and_no_word_of_what_is_usual() -> None:
    (line,) = progress.news(_waiting(words="1 of 2 VMs run"), 80)
    assert line.text == "  ...   machines        1 of 2 VMs run".ljust(64) + "12:00 of 2:00:00"
    queued = progress.news(_waiting(on_interrupt=OnInterrupt.STAYS_QUEUED), 80)
    text = " ".join(line.text.strip() for line in queued)
    assert "the request stays in the queue" in text


@pytest.mark.parametrize(
    ("state", "mark", "look"),
    [
        (StageState.DONE, "done", Look.GOOD),
        (StageState.WAITING, "wait", Look.WARN),
        (StageState.FAILED, "fail", Look.BAD),
        (StageState.INTERRUPTED, "stop", Look.WARN),
    ],
)
def test_the_end_of_a_stage_is_one_line_with_its_time(
    state: StageState, mark: str, look: Look
) -> None:
    (line,) = progress.ended(_ended(state), 80)
    assert line.text == f"  {mark}  Terraform       6 of 6".ljust(76) + "0:42"
    assert line.look is look


def test_the_end_of_what_is_told_in_other_words_is_no_line_unless_it_failed() -> None:
    assert progress.ended(_ended(StageState.DONE, StageName.CHECKS), 80) == []
    assert progress.ended(_ended(StageState.FAILED, StageName.CHECKS), 80)


def test_a_terminal_has_a_row_for_each_open_stage_and_one_for_an_interrupt() -> None:
    saves = {"on_interrupt": OnInterrupt.SAVES}
    both = [
        _waiting(61, None, stage=StageName.TERRAFORM, words="12 of 34", **saves),
        _waiting(5, None, stage=StageName.CLUSTER, words=None, **saves),
    ]
    lines = [line.text for line in progress.live(both, 80)]
    assert lines == [
        "  ...   Terraform       12 of 34".ljust(76) + "1:01",
        "  ...   cluster".ljust(76) + "0:05",
        "        Ctrl-C lets Terraform save its state",
    ]
    assert progress.live([], 80) == []
