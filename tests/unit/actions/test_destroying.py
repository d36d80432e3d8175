"""How a run ends that destroys its cluster whatever happened."""

from types import SimpleNamespace
from typing import Any, Never, cast

import pytest

from provision.actions import destroy as module
from provision.codes import Code, ExitCode
from provision.errors import CapacityError, Problem, ProvisionError, StateError, StillWaiting
from provision.kinds import registry
from provision.lifecycle import consent, ownership


def _wait() -> Never:
    raise StillWaiting("train-1 has not begun: no room", why="it stays", fix="wait on")


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """End with a wait whose time is over, and destroy: how that ends."""
    told: list[tuple[str, str]] = []

    def end(error: type[ProvisionError], *, deployed: bool, fails: bool = False) -> Problem:
        def destroy(_: object) -> None:
            if fails:
                raise StateError("it is locked")

        monkeypatch.setattr(module, "connect", lambda _: None)
        monkeypatch.setattr(module, "destroy", destroy)
        monkeypatch.setattr(consent, "doubts", lambda *_: ())
        monkeypatch.setattr(ownership, "deployed", lambda *_: deployed or None)
        monkeypatch.setattr(registry, "given", lambda _: None)
        nothing = SimpleNamespace(
            settings=SimpleNamespace(capacity_timeout=1200.0),
            report=SimpleNamespace(action="Run", problems=[]),
            console=SimpleNamespace(progress=lambda _: None),
            stages=SimpleNamespace(destroys=False),
            agreed=False,
            note=lambda _: None,
            reached=lambda _, what, fix: told.append((what, fix)),
        )
        with pytest.raises(error) as caught:
            module.after_all(cast("Any", nothing), _wait, lambda: "")
        assert type(caught.value) is error
        (problem,) = caught.value.problems
        end.told = told  # type: ignore[attr-defined]  # what NOTIFY would be told
        return problem

    return end


def test_a_wait_that_is_over_keeps_nothing_and_does_not_end_as_one_that_keeps_all(
    ended: Any,
) -> None:
    problem = ended(CapacityError, deployed=True)

    assert CapacityError.exit_code is ExitCode.CAPACITY
    assert (problem.code, problem.what) == (Code.GAVE_UP, "Gave up: no machines within 20 min")
    assert problem.why == "train-1 has not begun: no room\nthe cluster is destroyed"
    assert "greater CAPACITY_TIMEOUT; without --destroy-after" in problem.fix
    assert Code.GAVE_UP.is_retryable


def test_what_is_not_destroyed_is_said_to_be_billed(ended: Any) -> None:
    problem = ended(CapacityError, deployed=True, fails=True)

    assert problem.code is Code.GAVE_UP
    told = "the cluster is not destroyed, and is billed: it is locked"
    assert problem.why.endswith(told)
    assert ended.told == [(told, "aiinfra Destroy")]


def test_where_there_is_nothing_to_destroy_the_wait_is_what_it_was(ended: Any) -> None:
    problem = ended(StillWaiting, deployed=False)

    assert (problem.code, problem.why) == (Code.WAITING, "it stays")
