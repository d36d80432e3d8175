"""What Google refuses after the apply, and at the end of a cluster, is told as what it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.errors import ClusterError, ExitCode, TerraformError
from provision.google.api import GoogleApiError
from provision.kinds.vms import release
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase
from provision.report import Report
from provision.state.location import StateLocation
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from provision.google.owner import Owner

GROUP = "projects/p/zones/z/instanceGroupManagers/np-mig"
FINAL = "Cancelling resize request that has reached a final state is not possible."
CLOUD = cast("Any", SimpleNamespace(folder=SimpleNamespace(location=SimpleNamespace(url="gs://b"))))


def test_a_refusal_after_the_apply_is_no_failed_check_and_says_what_stands() -> None:
    words = "Required 'compute.instances.list' permission for 'projects/p'"
    with pytest.raises(ClusterError) as caught, phases.during(Phase.STANDING, CLOUD):
        raise GoogleApiError(403, words, "https://compute")
    assert caught.value.exit_code is ExitCode.CLUSTER
    (problem,) = caught.value.problems
    assert "what was made is kept, and so is its state in gs://b" in problem.why
    assert "compute.instances.list" in problem.fix
    assert "Create again" in problem.fix


LOCATION = StateLocation("state", "np-deployment", is_default=False)
RECORD = cast("Any", SimpleNamespace(project_id="p", name_prefix="np"))
OWNER = ownership.ours(RECORD, LOCATION)


class Requests:
    """A Google with requests for VMs, whose cancelling ends so."""

    def __init__(self, *states: str, error: GoogleApiError | None = None) -> None:
        self.states = states
        self.error = error
        self.cancelled: list[str] = []
        self.is_ours = True

    def resize_requests(self, group: str) -> list[dict[str, Any]]:
        assert group == GROUP
        return [
            {"name": f"np-{number}", "resizeBy": 1, "state": state}
            for number, state in enumerate(self.states, 1)
        ]

    def cancel_resize_request(self, group: str, name: str) -> None:
        assert group == GROUP
        self.cancelled.append(name)
        if self.error:
            raise self.error

    def marked(self, _look: object, _project: str, owner: Owner) -> list[dict[str, str]]:
        return [{"selfLink": f"https://x/v1/{GROUP}"}] if owner == OWNER and self.is_ours else []


def _cancel(api: Requests) -> None:
    known = {GROUP, f"{GROUP}/resizeRequests/np-1", "projects/p/zones/z/instances/a", "np@p"}
    cloud = SimpleNamespace(api=api, folder=SimpleNamespace(known=lambda: known, location=LOCATION))
    progress = Progress(Clock(0), lambda _: None)
    console = SimpleNamespace(progress=progress.tell)
    run = SimpleNamespace(console=console, progress=progress, report=Report())
    release.release(cast("Any", run), cast("Any", cloud), RECORD)


def test_m8_open_requests_are_cancelled_and_no_others() -> None:
    api = Requests("SUCCEEDED", "ACCEPTED", "FAILED", "CREATING", "CANCELLED")
    _cancel(api)
    assert api.cancelled == ["np-2", "np-4"]


def test_requests_of_a_group_that_the_state_names_but_another_owns_are_left() -> None:
    api = Requests("ACCEPTED")
    api.is_ours = False
    _cancel(api)
    assert api.cancelled == []


@pytest.mark.parametrize(("code", "words"), [(400, FINAL), (404, "not found")])
def test_m15_a_request_that_has_ended_meanwhile_is_as_good_as_cancelled(
    code: int, words: str
) -> None:
    api = Requests("ACCEPTED", "ACCEPTED", error=GoogleApiError(code, words, "url"))
    _cancel(api)
    assert api.cancelled == ["np-1", "np-2"]


def test_a_request_that_may_not_be_cancelled_stops_a_destroy() -> None:
    with pytest.raises(TerraformError, match="Could not cancel"):
        _cancel(Requests("ACCEPTED", error=GoogleApiError(403, "no", "url")))
