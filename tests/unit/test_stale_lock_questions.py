"""Who decides that a stale lock is freed: --yes, or a person; Destroy asks nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision import actions, runs
from provision.errors import StateError
from provision.locks import Lock

LOCK = Lock("gs://b/lock", "OperationTypeApply", "ann@here", "2026-11-21", "1", 7)
OWN = runs.Announced("runs/own.json", -1)


class Situation:
    """A run that meets a stale lock."""

    def __init__(self, *, agreed: bool, answer: bool | None) -> None:
        self.freed: list[Lock] = []
        self.said: list[str] = []
        self.questions: list[str] = []
        self._answer = answer
        console = SimpleNamespace(
            is_terminal=answer is not None, progress=self.said.append, ask=self._ask
        )
        self.run = SimpleNamespace(agreed=agreed, console=console)
        self.cloud = SimpleNamespace(folder=self)

    def _ask(self, question: str) -> bool | None:
        self.questions.append(question)
        return self._answer

    def free(self, lock: Lock) -> bool:
        self.freed.append(lock)
        return True

    def meet(self, *, asks: bool) -> None:
        run, cloud = cast("Any", self.run), cast("Any", self.cloud)
        actions._free_stale(run, cloud, LOCK, OWN, asks=asks)


@pytest.fixture(autouse=True)
def _stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "is_stale", lambda *_: True)


@pytest.mark.parametrize("asks", [True, False])
def test_yes_is_enough(asks: object) -> None:
    met = Situation(agreed=True, answer=False)
    met.meet(asks=bool(asks))
    assert met.freed == [LOCK]
    assert met.questions == []
    assert "Freed the lock of ann@here" in met.said[0]


def test_a_person_who_says_yes_is_enough() -> None:
    met = Situation(agreed=False, answer=True)
    met.meet(asks=True)
    assert met.freed == [LOCK]


@pytest.mark.parametrize(
    ("situation", "asks", "questions"),
    [
        (Situation(agreed=False, answer=False), True, 1),
        (Situation(agreed=False, answer=None), True, 0),
        (Situation(agreed=False, answer=True), False, 0),
    ],
    ids=["a no", "no terminal", "an action that never asks"],
)
def test_without_agreement_the_lock_stays(
    situation: Situation, asks: object, questions: int
) -> None:
    met = situation
    with pytest.raises(StateError, match="was killed"):
        met.meet(asks=bool(asks))
    assert met.freed == []
    assert len(met.questions) == questions


def test_a_lock_that_is_not_stale_is_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "is_stale", lambda *_: False)
    met = Situation(agreed=True, answer=True)
    with pytest.raises(StateError, match="Somebody else is at work"):
        met.meet(asks=True)
    assert met.freed == []
