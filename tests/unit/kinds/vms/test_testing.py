"""A Test of VMs: all of them, who is asked, and what is said of single ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.documents.checks import VmCheck
from provision.documents.vm_status import StartupStep
from provision.errors import ClusterError, StillWaiting
from provision.kinds.vms import instances, testing
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.startup import Startup
from provision.time.clock import Clock
from tests.unit.kinds.vms.test_bandwidth import WHERE, made

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.state.record import Record

SEVEN = "7 GPUs instead of 8"


def test_a_bad_vm_is_not_recreated_under_who_works_on_it() -> None:
    used = VmCheck(faults=(SEVEN,), users=("python3 (41)",))
    (problem,) = testing.of_vms(made(1), {"vm-0": used}, WHERE)
    assert problem.fix.startswith("end python3 (41), or let them end; then let Google recreate it")
    note = testing.left_out({"vm-0": used.users}, all_of_them=False)
    assert note.what == "not measured: the GPUs of vm-0 (python3 (41)) are in use"


def test_login_shells_that_are_not_as_jobs_are_one_problem_that_recreates_nothing() -> None:
    vms = made(2)
    found = instances.judge(vms[0], {"login": ["NCCL_NET=gIB instead of nothing"]}).login
    (problem,) = testing.of_vms(vms, {vm.name: VmCheck(login=found) for vm in vms}, WHERE)
    assert problem.what == "a login shell on vm-0, vm-1 has NCCL_NET=gIB instead of nothing"
    assert "recreate" not in problem.fix


def test_many_bad_vms_are_named_and_a_handful_in_full() -> None:
    vms = made(9)
    problems = testing.of_vms(vms, {vm.name: VmCheck(faults=(SEVEN,)) for vm in vms}, WHERE)
    assert len(problems) == 6
    assert problems[5].what == "4 more: vm-5, vm-6, vm-7, vm-8"


OLDER = "by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
HEARS = {"agent": StartupStep(state="done")}
REPORTED = {"gpus": 8, "names": ["NVIDIA H100 80GB HBM3"] * 8, "driver": "580", "interfaces": 9}


@pytest.mark.parametrize(
    ("startup", "hears"),
    [
        (Startup(state="done", steps=HEARS), True),
        # Nothing is known of it: guest attributes may be forbidden.
        (Startup(), True),
        (Startup(state="failed", step="command", steps=HEARS), True),
        (Startup(state="failed", step="gpu", steps={"gpu": StartupStep(state="failed")}), False),
        (Startup(state="running", step="gpu"), False),
        (Startup(state="done"), False),
    ],
)
def test_only_who_can_hear_of_a_task_is_asked(startup: Startup, *, hears: bool) -> None:
    assert testing._hears(startup) is hears


@pytest.mark.parametrize(
    ("startup", "faults"),
    [
        (
            Startup(state="failed", step="gpu", gpu_check=REPORTED | {"gpus": 7}),
            (SEVEN, "it can't be asked: it failed in the step gpu"),
        ),
        (
            Startup(state="running", step="mounts"),
            ("it can't be asked: it is at the step mounts",),
        ),
        (Startup(state="done"), (f"it can't be asked: it has started up, {OLDER}",)),
    ],
)
def test_of_who_can_not_be_asked_its_start_up_tells(
    startup: Startup, faults: tuple[str, ...]
) -> None:
    assert testing._judged(made(1)[0], startup, None).faults == faults


RECORD = cast(
    "Record",
    SimpleNamespace(project_id="p", zone="z", region="r", name_prefix="np", settings={}),
)
OPEN = {"name": "np-1", "state": "ACCEPTED", "resizeBy": 1}
GONE_BY = OPEN | {"state": "SUCCEEDED"}


def _with(*statuses: str) -> list[Vm]:
    about = {"machineType": "a2-highgpu-2g", "networkInterfaces": [{}]}
    return [
        Vm.of({"name": f"np-vm-{number}", "status": status, **about}, Clock(0))
        for number, status in enumerate(statuses)
    ]


def _cloud(group: dict[str, Any] | None, *requests: dict[str, Any]) -> Cloud:
    api = SimpleNamespace(find=lambda *_: group, resize_requests=lambda _: list(requests))
    folder = SimpleNamespace(outputs=lambda: {"group": {"size": 2}})
    return cast("Cloud", SimpleNamespace(api=api, folder=folder))


@pytest.mark.parametrize(
    ("cloud", "vms", "error", "code"),
    [
        (_cloud({"targetSize": 2}), _with("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 2}), [], StillWaiting, 75),
        (_cloud({"targetSize": 2}), _with("RUNNING", "STAGING"), StillWaiting, 75),
        (_cloud({"targetSize": 0}, OPEN), _with("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 1}, GONE_BY), _with("RUNNING"), ClusterError, 8),
        (_cloud({"targetSize": 0}), [], ClusterError, 8),
        (_cloud(None), [], ClusterError, 8),
        (_cloud({"targetSize": 3}), _with("RUNNING", "RUNNING", "RUNNING"), ClusterError, 8),
    ],
)
def test_row_6_a_part_of_the_vms_or_none_does_not_pass(
    cloud: Cloud, vms: list[Vm], error: type[StillWaiting | ClusterError], code: int
) -> None:
    with pytest.raises(error) as caught:
        testing.require_all(cloud, RECORD, vms)
    assert caught.value.exit_code == code
    running = sum(vm.status == "RUNNING" for vm in vms)
    assert f"{running} of 2 VMs of np-mig" in caught.value.problems[0].what


def test_all_of_them_are_tested() -> None:
    testing.require_all(_cloud({"targetSize": 2}), RECORD, _with("RUNNING", "RUNNING"))
