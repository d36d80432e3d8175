"""Waiting for VMs: what ends it, and what is told then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.codes import Code
from provision.errors import CapacityError, ClusterError, ExitCode, Problem, StillWaiting
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds import machines
from provision.spec.pools import Group
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNNING = {"instanceStatus": "RUNNING", "currentAction": "NONE"}
COMING = {"instanceStatus": "STAGING", "currentAction": "CREATING"}
NOTHING_LEFT = (
    "The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill"
    " the request. '(resource type:compute)'."
)
NO_QUOTA = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 8.0 in region us-central1."
HERE, NEAR, FAR = "us-central1-a", "us-central1-c", "europe-west4-b"


class FakeApi:
    """A Google that answers each look at the group with the next of these."""

    def __init__(
        self,
        *looks: Sequence[dict[str, Any]] | GoogleApiError,
        zones: dict[str, set[str]] | GoogleApiError | None = None,
    ) -> None:
        self.looks = list(looks)
        self.zones = zones if zones is not None else {"a2-highgpu-2g": {HERE, NEAR, FAR}}

    def managed_instances(self, *_: str) -> list[dict[str, Any]]:
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, GoogleApiError):
            raise look
        return list(look)

    def zones_with(self, _project: str, _collection: str, name: str) -> set[str]:
        if isinstance(self.zones, GoogleApiError):
            raise self.zones
        return self.zones[name]


def _refused(code: str, message: str, **details: Any) -> dict[str, Any]:
    error = {"code": code, "message": message, "errorDetails": [details]}
    return {"currentAction": "CREATING", "lastAttempt": {"errors": {"errors": [error]}}}


STOCKOUT = _refused("ZONE_RESOURCE_POOL_EXHAUSTED", NOTHING_LEFT)
QUOTA = _refused("QUOTA_EXCEEDED", NO_QUOTA)
FULL = "Specified reservation mine does not have available resources for the request."
INTERNAL = _refused("INTERNAL_ERROR", "Internal error. Please try again.")


def _group(size: int = 2, **fields: Any) -> Group:
    values = {"project": "p", "zone": HERE, "name": "np-mig", "machine_type": "a2-highgpu-2g"}
    return Group(**values | {"size": size} | fields)


def _wait(
    api: FakeApi, group: Group | None = None, timeout: float = 600, *, may_leave: bool = False
) -> list[str]:
    told: list[str] = []
    machines.wait(
        cast("GoogleApi", api),
        group or _group(),
        timeout=timeout,
        progress=Progress(Clock(0), told.append),
        may_leave=may_leave,
    )
    return told


def _refusal(api: FakeApi, group: Group | None = None) -> Problem:
    with pytest.raises(CapacityError) as caught:
        _wait(api, group)
    assert caught.value.exit_code is ExitCode.CAPACITY
    (problem,) = caught.value.problems
    return problem


def test_a_reservation_that_is_full_is_waited_for_unless_there_is_another_zone() -> None:
    full = _refused("CONDITION_NOT_MET", FULL)
    api = FakeApi([RUNNING, full], [RUNNING, RUNNING])
    assert _wait(api)[-1] == "2 of 2 VMs run"
    with pytest.raises(CapacityError) as caught:
        _wait(FakeApi([RUNNING, full]), may_leave=True)
    (problem,) = caught.value.problems
    assert problem.code is Code.RESERVATION_FULL
    assert problem.setting == "RESERVATION_NAME"


def test_it_ends_when_all_run() -> None:
    assert _wait(FakeApi([COMING, COMING], [RUNNING, COMING], [RUNNING, RUNNING])) == [
        "0 of 2 VMs run",
        "1 of 2 VMs run",
        "2 of 2 VMs run",
    ]


def test_a_vm_too_many_is_waited_for_as_well() -> None:
    api = FakeApi([RUNNING, RUNNING, RUNNING], [RUNNING, RUNNING])
    assert _wait(api) == ["3 of 2 VMs run", "2 of 2 VMs run"]


@pytest.mark.parametrize("refused", [STOCKOUT, QUOTA])
def test_a_refusal_ends_it_at_the_first_look_in_googles_words(refused: dict[str, Any]) -> None:
    api = FakeApi([RUNNING, refused], [RUNNING, RUNNING])
    problem = _refusal(api)
    (error,) = refused["lastAttempt"]["errors"]["errors"]
    assert problem.why == " ".join(error["message"].split())
    assert problem.what.endswith("1 of 2 VMs run")
    assert "Create again" in problem.fix
    assert "Destroy removes everything" in problem.fix
    assert len(api.looks) == 1


def test_a_refusal_of_several_vms_is_told_once() -> None:
    assert _refusal(FakeApi([STOCKOUT, STOCKOUT])).why == NOTHING_LEFT


def test_refusals_of_both_kinds_are_told_together() -> None:
    with pytest.raises(CapacityError) as caught:
        _wait(FakeApi([STOCKOUT, QUOTA]))
    assert len(caught.value.problems) == 2


def test_what_a_vm_that_runs_has_been_through_does_not_count() -> None:
    api = FakeApi([STOCKOUT | RUNNING, COMING], [STOCKOUT | RUNNING, RUNNING])
    assert _wait(api) == ["1 of 2 VMs run", "2 of 2 VMs run"]


def test_an_error_that_may_go_by_is_only_told() -> None:
    assert _wait(FakeApi([RUNNING, INTERNAL], [RUNNING, RUNNING])) == [
        "1 of 2 VMs run; Internal error. Please try again.",
        "2 of 2 VMs run",
    ]


def test_a_stockout_names_other_zones_the_near_ones_first() -> None:
    problem = _refusal(FakeApi([STOCKOUT]))
    assert problem.setting == "ZONE"
    lines = problem.fix.splitlines()
    assert f"zones of us-central1 that have the machine type: {NEAR}" in lines
    assert "other regions that have it: europe-west4" in lines
    assert lines.index(f"zones of us-central1 that have the machine type: {NEAR}") < lines.index(
        "other regions that have it: europe-west4"
    )
    assert HERE not in problem.fix


def test_regions_of_the_same_continent_come_first_and_not_all_are_named() -> None:
    regions = [f"europe-west{number}" for number in range(1, 9)] + ["us-east4"]
    zones = {"a2-highgpu-2g": {f"{region}-b" for region in regions}}
    fix = _refusal(FakeApi([STOCKOUT], zones=zones)).fix
    assert "other regions that have it: us-east4, europe-west1," in fix
    assert fix.count("europe-west") == 5
    assert "and 3 more" in fix


def test_a_zone_that_google_itself_recommends_is_passed_on() -> None:
    info = {"metadatas": {"zonesAvailable": "us-central1-f,us-central1-c"}}
    refused = _refused("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", NOTHING_LEFT, errorInfo=info)
    assert (
        "set ZONE=us-central1-c, where Google says that some are available now"
        in _refusal(FakeApi([refused])).fix
    )


def test_an_attached_gpu_must_be_there_as_well() -> None:
    zones = {"n1-standard-8": {HERE, NEAR, FAR}, "nvidia-tesla-t4": {HERE, FAR}}
    group = _group(machine_type="n1-standard-8", gpu="nvidia-tesla-t4", gpus=2)
    problem = _refusal(FakeApi([STOCKOUT], zones=zones), group)
    assert "n1-standard-8 with 2 nvidia-tesla-t4" in problem.what
    assert NEAR not in problem.fix
    assert "europe-west4" in problem.fix


def test_a_stockout_is_told_even_if_nobody_says_where_to_go() -> None:
    api = FakeApi([STOCKOUT], zones=GoogleApiError(403, "no", "url"))
    problem = _refusal(api)
    assert problem.why == NOTHING_LEFT
    assert "set ZONE to another zone that has a2-highgpu-2g" in problem.fix


def test_a_quota_is_named_with_its_limit_its_region_and_its_page() -> None:
    problem = _refusal(FakeApi([QUOTA]))
    assert problem.what.startswith(
        "The quota NVIDIA_A100_GPUS of p in us-central1 has a limit of 8, and this group needs 4"
    )
    assert "https://console.cloud.google.com/iam-admin/quotas?project=p" in problem.fix
    assert "NVIDIA_A100_GPUS and us-central1" in problem.fix
    assert "gcloud" not in problem.fix


def test_a_quota_that_several_kinds_of_gpus_have_is_named_with_the_kind() -> None:
    info = {"dimensions": {"gpu_family": "NVIDIA_H100", "region": "us-central1"}}
    words = "Quota 'GPUS_PER_GPU_FAMILY' exceeded.  Limit: 0.0 in region us-central1."
    problem = _refusal(FakeApi([_refused("QUOTA_EXCEEDED", words, quotaInfo=info)]))
    assert "quota GPUS_PER_GPU_FAMILY for NVIDIA_H100" in problem.what


def test_a_quota_of_all_regions_is_told_as_such_and_no_zone_is_offered() -> None:
    words = "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
    problem = _refusal(FakeApi([_refused("QUOTA_EXCEEDED", words)]))
    assert "of p in all regions has a limit of 0" in problem.what
    assert "GPUS_ALL_REGIONS and all regions" in problem.fix
    assert "ZONE" not in problem.fix


def test_a_reservation_that_is_full_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    words = "Specified reservation 'r' does not have available resources for the request."
    with pytest.raises(StillWaiting) as caught:
        _wait(FakeApi([_refused("CONDITION_NOT_MET", words)]))
    assert words in caught.value.problems[0].what


def test_a_limit_at_the_end_of_a_sentence_is_a_number_all_the_same() -> None:
    words = "Quota 'CPUS' exceeded.  Limit: 24.0."
    problem = _refusal(FakeApi([_refused("QUOTA_EXCEEDED", words)]))
    assert problem.what.startswith("The quota CPUS of p in us-central1 has a limit of 24,")


def test_a_quota_in_words_that_nobody_knows_yet_is_told_all_the_same() -> None:
    problem = _refusal(FakeApi([_refused("QUOTA_EXCEEDED", "No more.")]))
    assert problem.what.startswith("The quota of p in us-central1 is exceeded")
    assert problem.why == "No more."


def test_the_end_of_the_time_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    with pytest.raises(StillWaiting) as caught:
        _wait(FakeApi([RUNNING, COMING]))
    (problem,) = caught.value.problems
    assert problem.what == "After 10 minutes, 1 of 2 VMs run"
    assert problem.setting == "CAPACITY_TIMEOUT"


def test_a_group_that_can_not_be_looked_at_is_no_failed_check_of_the_beginning() -> None:
    words = "Required 'compute.instanceGroupManagers.get' permission for 'projects/p'"
    with pytest.raises(ClusterError) as caught:
        _wait(FakeApi(GoogleApiError(403, words, "https://compute")))
    (problem,) = caught.value.problems
    assert words in problem.why
    assert "roles/compute.instanceAdmin.v1" in problem.fix
    assert "Create again" in problem.fix
