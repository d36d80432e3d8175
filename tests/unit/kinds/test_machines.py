from collections.abc import Sequence
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.errors import CapacityError, ClusterError, ExitCode, Problem, StillWaiting
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds import machines
from provision.spec.pools import Group
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.unit.kinds.cases import looks_at, problem_of
from tests.unit.table import Row, rows

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
        self.managed_instances = looks_at(self.looks)
        self.zones = zones if zones is not None else {"a2-highgpu-2g": {HERE, NEAR, FAR}}

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
    problem = problem_of(CapacityError, lambda: _wait(FakeApi([RUNNING, full]), may_leave=True))
    assert problem.code is Code.RESERVATION_FULL
    assert problem.setting == "RESERVATION_NAME"


def test_it_ends_when_all_run_and_tells_what_may_go_by() -> None:
    assert _wait(FakeApi([COMING, COMING], [RUNNING, COMING], [RUNNING, RUNNING])) == [
        "0 of 2 VMs run; 2 there, and starting",
        "1 of 2 VMs run; 1 there, and starting",
        "2 of 2 VMs run",
    ]
    api = FakeApi([RUNNING, RUNNING, RUNNING], [RUNNING, RUNNING])
    assert _wait(api) == ["3 of 2 VMs run", "2 of 2 VMs run"]
    api = FakeApi([STOCKOUT | RUNNING, COMING], [STOCKOUT | RUNNING, RUNNING])
    assert _wait(api) == ["1 of 2 VMs run; 1 there, and starting", "2 of 2 VMs run"]
    assert _wait(FakeApi([RUNNING]), _group(1)) == ["1 of 1 VM runs"]
    assert _group(1, pool="np-gpu").that_run(0) == "0 of 1 node of np-gpu runs"
    assert _wait(FakeApi([RUNNING, INTERNAL], [RUNNING, RUNNING])) == [
        "1 of 2 VMs run; Internal error. Please try again.",
        "2 of 2 VMs run",
    ]


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


def test_refusals_of_several_vms_are_told_once_and_a_stockout_names_the_near_zones_first() -> None:
    assert _refusal(FakeApi([STOCKOUT, STOCKOUT])).why == NOTHING_LEFT
    with pytest.raises(CapacityError) as caught:
        _wait(FakeApi([STOCKOUT, QUOTA]))
    assert len(caught.value.problems) == 2
    problem = _refusal(FakeApi([STOCKOUT]))
    assert problem.setting == "ZONE"
    lines = problem.fix.splitlines()
    assert f"zones of us-central1 that have the machine type: {NEAR}" in lines
    assert "other regions that have it: europe-west4" in lines
    assert lines.index(f"zones of us-central1 that have the machine type: {NEAR}") < lines.index(
        "other regions that have it: europe-west4"
    )
    assert HERE not in problem.fix


TABLE = """
# Regions of the same continent come first, and not all are named.
CODE=ZONE_RESOURCE_POOL_EXHAUSTED REGIONS=many UNSAID=europe-west6
    -> ZONE: other regions that have it: us-east4, europe-west1, | and 3 more
# A zone that Google itself recommends is passed on.
CODE=ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS FREE=us-central1-f,us-central1-c
    -> ZONE: set ZONE=us-central1-c, where Google says that some are available now
# An attached GPU must be there as well.
CODE=ZONE_RESOURCE_POOL_EXHAUSTED GPU=nvidia-tesla-t4 UNSAID=us-central1-c
    -> ZONE: n1-standard-8 with 2 nvidia-tesla-t4 | europe-west4
# It is told even if nobody says where to go.
CODE=ZONE_RESOURCE_POOL_EXHAUSTED FORBIDDEN=yes -> ZONE:
    does not have enough resources available to fulfill the request. '(resource type:compute)'.
    | set ZONE to another zone that has a2-highgpu-2g

# A quota is named with its limit, its region and its page.
SAID="Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 8.0 in region us-central1." UNSAID=gcloud
    -> : The quota NVIDIA_A100_GPUS of p in us-central1 has a limit of 8, and this group needs 4
    | https://console.cloud.google.com/iam-admin/quotas?project=p | NVIDIA_A100_GPUS and us-central1
SAID="Quota 'GPUS_PER_GPU_FAMILY' exceeded.  Limit: 0.0 in region us-central1." FAMILY=NVIDIA_H100
    -> : quota GPUS_PER_GPU_FAMILY for NVIDIA_H100
SAID="Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally." UNSAID=ZONE
    -> : of p in all regions has a limit of 0 | GPUS_ALL_REGIONS and all regions
SAID="Quota 'CPUS' exceeded.  Limit: 24.0."
    -> : The quota CPUS of p in us-central1 has a limit of 24,
SAID="No more." -> : The quota of p in us-central1 is exceeded | No more.
"""


@rows(TABLE)
def test_a_refusal_is_told_with_what_to_do(row: Row) -> None:
    asked = dict(row.environ)
    details: dict[str, Any] = {}
    if free := asked.get("FREE"):
        details["errorInfo"] = {"metadatas": {"zonesAvailable": free}}
    if family := asked.get("FAMILY"):
        details["quotaInfo"] = {"dimensions": {"gpu_family": family, "region": "us-central1"}}
    said = asked.get("SAID", NOTHING_LEFT)
    refused = _refused(asked.get("CODE", "QUOTA_EXCEEDED"), said, **details)
    group, zones = _group(), {"a2-highgpu-2g": {HERE, NEAR, FAR}}
    if "REGIONS" in asked:
        regions = [*(f"europe-west{number}" for number in range(1, 9)), "us-east4"]
        zones = {"a2-highgpu-2g": {f"{region}-b" for region in regions}}
    if gpu := asked.get("GPU"):
        group = _group(machine_type="n1-standard-8", gpu=gpu, gpus=2)
        zones = {"n1-standard-8": {HERE, NEAR, FAR}, gpu: {HERE, FAR}}
    forbidden = GoogleApiError(403, "no", "url") if "FORBIDDEN" in asked else None
    problem = _refusal(FakeApi([refused], zones=forbidden or zones), group)
    row.is_said_by([problem], [])
    assert problem.why == " ".join(said.split())
    if unsaid := asked.get("UNSAID"):
        assert unsaid not in problem.fix


def test_the_end_of_the_time_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    problem = problem_of(StillWaiting, lambda: _wait(FakeApi([RUNNING, COMING])))
    assert problem.what == "After 10 minutes, 1 of 2 VMs run; 1 there, and starting"
    assert problem.setting == "CAPACITY_TIMEOUT"
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    words = "Specified reservation 'r' does not have available resources for the request."
    with pytest.raises(StillWaiting) as caught:
        _wait(FakeApi([_refused("CONDITION_NOT_MET", words)]))
    assert words in caught.value.problems[0].what


def test_a_group_that_can_not_be_looked_at_is_no_failed_check_of_the_beginning() -> None:
    words = "Required 'compute.instanceGroupManagers.get' permission for 'projects/p'"
    problem = problem_of(
        ClusterError, lambda: _wait(FakeApi(GoogleApiError(403, words, "https://compute")))
    )
    assert words in problem.why
    assert "roles/compute.instanceAdmin.v1" in problem.fix
    assert "Create again" in problem.fix
