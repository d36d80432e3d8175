"""What Google's failures mean in each phase, and that a second failure never hides the first."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.codes import Code, ExitCode
from provision.errors import CapacityError, ClusterError, Problem, StateError, TerraformError
from provision.google.api import GoogleApiError
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase

CLOUD = cast("Any", SimpleNamespace(folder=SimpleNamespace(location=SimpleNamespace(url="gs://b"))))


class Run:
    """A run that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[Problem] = []

    def note(self, problems: list[Problem]) -> None:
        self.notes += problems


@pytest.mark.parametrize("phase", Phase)
def test_a_failed_request_after_the_first_write_is_no_failed_check(phase: Phase) -> None:
    with pytest.raises(phase.error) as caught, phases.during(phase, CLOUD):
        raise GoogleApiError(503, "Service Unavailable", "https://compute")
    assert caught.value.exit_code not in {ExitCode.CHECK, ExitCode.DONE}
    (problem,) = caught.value.problems
    assert "Service Unavailable" in problem.why
    assert "gs://b" in problem.why
    assert problem.fix.endswith(phase.fix)
    assert problem.code is not None
    assert problem.code.is_retryable


def test_a_refusal_after_the_apply_says_what_is_missing_and_what_stands() -> None:
    words = "Required 'compute.instances.list' permission for 'projects/p'"
    with pytest.raises(ClusterError) as caught, phases.during(Phase.STANDING, CLOUD):
        raise GoogleApiError(403, words, "https://compute")
    (problem,) = caught.value.problems
    assert "what was made is kept, and so is its state in gs://b" in problem.why
    assert "compute.instances.list" in problem.fix


def test_a_phase_leaves_other_errors_alone() -> None:
    with pytest.raises(CapacityError), phases.during(Phase.MAKING, CLOUD):
        raise CapacityError("no machines")


def _fail(error: Exception) -> None:
    raise error


def _fails_twice(run: Run, second: Exception) -> None:
    try:
        _fail(TerraformError("the first", why="its reason"))
    except TerraformError:
        with phases.aside(cast("Any", run), but=CapacityError):
            _fail(second)
        raise


@pytest.mark.parametrize(
    "second",
    [
        GoogleApiError(503, "Service Unavailable", "https://compute"),
        StateError("the bucket is away"),
        ClusterError("something is left"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_second_failure_is_a_note_and_the_first_one_is_told(second: Exception) -> None:
    run = Run()
    with pytest.raises(TerraformError, match="the first"):
        _fails_twice(run, second)
    assert len(run.notes) == 1


def test_a_cause_that_google_knows_better_takes_the_place_of_the_failure() -> None:
    with pytest.raises(CapacityError, match="no machines"):
        _fails_twice(Run(), CapacityError("no machines", code=Code.CAPACITY_REFUSED))
