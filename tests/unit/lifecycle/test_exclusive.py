"""Who decides that a stale lock is freed: --yes, or a person; Destroy asks nobody."""

import contextlib
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.errors import StateError
from provision.lifecycle import exclusive
from provision.report import Report
from provision.settings.choices import Action
from provision.state import history, liveness
from provision.terraform.lock import Lock

LOCK = Lock("gs://b/lock", "OperationTypeApply", "ann@here", "2026-11-21", "1", 7)


class Situation:
    """A run that meets a stale lock."""

    def __init__(
        self, *, agreed: bool, answer: bool | None, action: Action = Action.CREATE
    ) -> None:
        self.freed: list[Lock] = []
        self.said: list[str] = []
        self.questions: list[str] = []
        self._answer = answer
        console = SimpleNamespace(
            is_terminal=answer is not None, progress=self.said.append, ask=self._ask
        )
        self.run = SimpleNamespace(
            agreed=agreed, break_lock="", console=console, report=Report(action=action)
        )
        self.cloud = SimpleNamespace(folder=self)

    def _ask(self, question: str) -> bool | None:
        self.questions.append(question)
        return self._answer

    def free(self, lock: Lock) -> bool:
        self.freed.append(lock)
        return True

    def meet(self) -> None:
        exclusive.free_stale(cast("Any", self.run), cast("Any", self.cloud), LOCK)


@pytest.fixture(autouse=True)
def _stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "is_stale", lambda *_: True)


@pytest.mark.parametrize("action", [Action.CREATE, Action.DESTROY])
def test_yes_is_enough_and_so_is_a_person_who_says_it(action: Action) -> None:
    met = Situation(agreed=True, answer=False, action=action)
    met.meet()
    assert met.freed == [LOCK]
    assert met.questions == []
    assert "Released the lock of ann@here" in met.said[0]
    asked = Situation(agreed=False, answer=True)
    asked.meet()
    assert asked.freed == [LOCK]


@pytest.mark.parametrize(
    ("met", "questions"),
    [
        (Situation(agreed=False, answer=False), 1),
        (Situation(agreed=False, answer=None), 0),
        (Situation(agreed=False, answer=True, action=Action.DESTROY), 0),
    ],
    ids=["a no", "no terminal", "Destroy, which never asks"],
)
def test_without_agreement_the_lock_stays(met: Situation, questions: int) -> None:
    with pytest.raises(StateError, match="A killed run left"):
        met.meet()
    assert met.freed == []
    assert len(met.questions) == questions


def test_a_lock_that_is_not_stale_is_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "is_stale", lambda *_: False)
    met = Situation(agreed=True, answer=True)
    with pytest.raises(StateError, match="Another run is changing"):
        met.meet()
    assert met.freed == []


@pytest.mark.parametrize(("created", "began"), [("2026-11-21T10:00:00Z", 1795255200), ("?", 2e9)])
def test_what_a_killed_run_has_made_costs_from_its_begin_on(
    monkeypatch: pytest.MonkeyPatch, created: str, began: float
) -> None:
    told: list[float] = []
    records = iter([None, SimpleNamespace(hourly="1")])
    run = SimpleNamespace(lock_id="2", follows_dead=False)
    left = dataclasses.replace(LOCK, created=created)
    monkeypatch.setattr(liveness, "announced", lambda *_: contextlib.nullcontext(run))
    monkeypatch.setattr(exclusive, "_take", lambda *_: left)
    monkeypatch.setattr(history, "add", lambda *_, began, **__: told.append(began))
    context = SimpleNamespace(clock=SimpleNamespace(now=lambda: 2e9), report=Report())
    cloud = SimpleNamespace(folder=SimpleNamespace(record=lambda: next(records)))
    with exclusive.alone(*cast("Any", (context, cloud, None, Path()))) as follows_killed:
        assert follows_killed
    assert told == [began]
