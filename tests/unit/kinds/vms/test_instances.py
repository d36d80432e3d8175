"""VMs: how long they may still run, where their notebook is, whether they have their GPUs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from provision.kinds.vms import instances
from provision.kinds.vms.instances import Vm
from provision.time.clock import Clock

REAL_TIME = Clock()


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


def test_a_vm_has_the_number_and_the_address_by_which_it_is_asked() -> None:
    vm = _vm(id="417", networkInterfaces=[{"networkIP": "10.0.0.2"}, {"networkIP": "10.1.0.2"}])
    assert (vm.id, vm.address, vm.interfaces) == ("417", "10.0.0.2", 2)
