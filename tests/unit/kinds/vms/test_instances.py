"""VMs: how long they may still run, where their notebook is, whether they have their GPUs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from provision.errors import ClusterError, Problem
from provision.kinds.vms import gpu_check, instances
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.startup import Startup
from provision.time.clock import Clock

REAL_TIME = Clock()
GROUP = "np-mig --zone us-central1-a --project p"


def _ago(**span: float) -> str:
    return (dt.datetime.now(dt.UTC) - dt.timedelta(**span)).isoformat()


def _vm(**fields: Any) -> Vm:
    base = "https://www.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/"
    machine = fields.pop("machine_type", "a2-highgpu-2g")
    document = {"name": "vm", "status": "RUNNING", "machineType": base + machine}
    return Vm.of(document | {"networkInterfaces": [{}]} | fields, REAL_TIME)


def _limited(started: str) -> Vm:
    return _vm(scheduling={"maxRunDuration": {"seconds": "172800"}}, lastStartTimestamp=started)


def test_a_vm_without_a_run_duration_may_stay() -> None:
    assert _vm(creationTimestamp=_ago(days=90)).remaining is None


def test_the_run_duration_counts_from_the_last_start() -> None:
    assert _limited(_ago(hours=47)).remaining == pytest.approx(3600, abs=60)


def test_a_rehearsals_time_runs_faster() -> None:
    document = {
        "name": "vm",
        "status": "RUNNING",
        "machineType": "a2-highgpu-2g",
        "scheduling": {"maxRunDuration": {"seconds": "1000"}},
        "creationTimestamp": _ago(seconds=10),
    }
    vm = Vm.of(document, Clock(0.02))
    assert vm.remaining == pytest.approx(500, abs=60)


def test_less_than_a_day_is_worth_a_warning_and_more_is_not() -> None:
    assert instances.ending_soon([_limited(_ago(hours=1)), _vm()]) == []
    (note,) = instances.ending_soon([_limited(_ago(hours=45))])
    assert note.setting == "MAX_RUN_DURATION"
    assert note.what == "in 2 h 59 min Google deletes vm"


@pytest.mark.parametrize("value", ["abc-dot-us-central1.notebooks.example", "https://abc.example"])
def test_a_notebooks_url_is_a_link(value: str) -> None:
    vm = _vm(metadata={"items": [{"key": "proxy-url", "value": value}]})
    assert vm.notebook is not None
    assert vm.notebook.startswith("https://abc")


def test_without_a_url_there_is_none() -> None:
    assert _vm(metadata={"items": [{"key": "proxy-url", "value": ""}]}).notebook is None
    assert _vm().notebook is None


FINE = {
    "gpus": 2,
    "names": ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"],
    "driver": "580.65",
    "ecc_errors": 0,
    "interfaces": 1,
}


def _judged(check: dict[str, Any] | None, vm: Vm | None = None) -> Problem | None:
    told = {"vm": Startup(state="done", gpu_check=check)}
    try:
        gpu_check.judge([vm or _vm()], told, GROUP)
    except ClusterError as error:
        return error.problems[0]
    return None


def test_a_vm_with_all_its_gpus_passes() -> None:
    assert _judged(FINE) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gpus": 1}, "1 GPUs instead of 2"),
        ({"names": ["Tesla T4"]}, "Tesla T4 instead of A100"),
        ({"driver": None}, "no driver"),
        ({"ecc_errors": 3}, "3 uncorrected memory (ECC) errors"),
        ({"interfaces": 5}, "5 network interfaces instead of 1"),
    ],
)
def test_what_differs_from_the_machine_table_is_named(change: dict[str, Any], words: str) -> None:
    problem = _judged(FINE | change)
    assert problem is not None
    assert problem.what == f"vm: {words}"
    assert f"recreate-instances {GROUP} --instances=vm" in problem.fix


def test_gpus_that_do_not_count_memory_errors_are_fine() -> None:
    assert _judged(FINE | {"ecc_errors": None}) is None


def test_an_attached_gpu_is_what_is_due() -> None:
    t4 = {"acceleratorType": "zones/z/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}
    vm = _vm(machine_type="n1-standard-8", guestAccelerators=[t4])
    assert _judged(FINE | {"gpus": 1, "names": ["Tesla T4"]}, vm) is None
    assert _judged(FINE, vm) is not None


def test_a_part_of_a_gpu_is_one_gpu_by_the_name_of_its_driver() -> None:
    part = {"gpus": 1, "names": ["NVIDIA RTX Pro 6000 Blackwell DC-12Q"]}
    assert _judged(FINE | part, _vm(machine_type="g4-standard-6")) is None
    assert _judged(FINE | part, _vm(machine_type="g4-standard-96")) is not None


def test_gpus_that_nobody_has_looked_at_do_not_pass() -> None:
    problem = _judged(None)
    assert problem is not None
    assert "have not been checked" in problem.what


def test_a_machine_without_gpus_needs_no_check() -> None:
    assert _judged(None, _vm(machine_type="n1-standard-8")) is None


def test_many_bad_vms_are_named_and_a_handful_in_full() -> None:
    many = [_vm(name=f"vm{number}") for number in range(9)]
    told = {vm.name: Startup(state="done", gpu_check=FINE | {"gpus": 0}) for vm in many}
    with pytest.raises(ClusterError) as caught:
        gpu_check.judge(many, told, GROUP)
    assert len(caught.value.problems) == 6
    assert caught.value.problems[5].what == "4 more: vm5, vm6, vm7, vm8"
