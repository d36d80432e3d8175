"""A VM is judged by what its machine type promises."""

from __future__ import annotations

from typing import Any

import pytest

from provision.kinds.vms import instances
from provision.kinds.vms.instances import Vm
from provision.time.clock import Clock

H100 = "NVIDIA H100 80GB HBM3"
MEGA_MTU = 8244


def _vm(machine: str = "a3-megagpu-8g", interfaces: int = 9, **fields: Any) -> Vm:
    document = {"name": "vm", "status": "RUNNING", "machineType": machine}
    return Vm.of(document | {"networkInterfaces": [{}] * interfaces} | fields, Clock())


def _gpu(**fields: Any) -> dict[str, Any]:
    usual = {
        "uuid": "GPU-1",
        "name": H100,
        "driver": "580.95.05",
        "ecc_volatile": 0,
        "ecc_aggregate": 0,
        "repair_pending": False,
        "repair_failed": False,
    }
    return usual | fields


def _interfaces(count: int = 9, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"eth{n}", "mtu": MEGA_MTU, "up": True} | fields for n in range(count)]


def _found(**fields: Any) -> dict[str, Any]:
    usual = {
        "error": "",
        "gpus": [_gpu() for _ in range(8)],
        "diagnostic": {"ran": True, "error": "", "failures": []},
        "interfaces": _interfaces(),
        "local_ssd": {"disks": 16, "expected": 16, "mounted": True, "bytes": 6 * 10**12},
        "fabric": {"kind": "tcpxo", "faults": []},
    }
    return usual | fields


def test_a_vm_that_is_as_it_should_be_has_no_faults() -> None:
    check = instances.judge(_vm(), _found())
    assert check.faults == ()
    assert (check.gpus, check.driver, check.ecc_errors) == (8, "580.95.05", 0)
    assert (check.diagnostic, check.interfaces, check.local_ssds) == ("passed", 9, 16)


EIGHT = [_gpu() for _ in range(8)]


FAILED: dict[str, Any] = {"ran": True, "failures": ["software of GPU 5: Row remap failure"]}
DOWN = {"name": "eth8", "mtu": MEGA_MTU, "up": False}
NAMED: dict[str, dict[str, Any]] = {
    "7 GPUs instead of 8": {"gpus": EIGHT[:7]},
    "nvidia-smi did not end": {"gpus": [], "error": "nvidia-smi did not end"},
    "NVIDIA L4 instead of H100": {"gpus": [*EIGHT[:7], _gpu(name="NVIDIA L4")]},
    "3 uncorrected memory (ECC) errors since its boot, on GPU 7": {
        "gpus": [*EIGHT[:7], _gpu(ecc_volatile=3)]
    },
    "GPU 0 can't repair its memory any more": {"gpus": [_gpu(repair_failed=True), *EIGHT[1:]]},
    "GPU 0 waits for a restart to repair its memory": {
        "gpus": [_gpu(repair_pending=True), *EIGHT[1:]]
    },
    f"DCGM's diagnostic failed: {FAILED['failures'][0]}": {"diagnostic": FAILED},
    "8 network interfaces instead of 9": {"interfaces": _interfaces(8)},
    "no link on eth8": {"interfaces": [*_interfaces(8), DOWN]},
    "7 interfaces have the MTU 8244 instead of the 8 of its GPUs": {
        "interfaces": [*_interfaces(2, mtu=1460), *_interfaces(7)]
    },
    "15 local SSDs instead of 16": {"local_ssd": {"disks": 15, "mounted": True}},
    "its local SSDs are not mounted at /mnt/localssd": {
        "local_ssd": {"disks": 16, "mounted": False}
    },
    "the fabric tcpxo: no libnccl-net.so": {
        "fabric": {"kind": "tcpxo", "faults": ["no libnccl-net.so"]}
    },
}


@pytest.mark.parametrize("fault", NAMED)
def test_what_is_not_as_it_should_be_is_named(fault: str) -> None:
    assert fault in instances.judge(_vm(), _found(**NAMED[fault])).faults


def test_errors_of_the_past_that_were_repaired_are_no_fault() -> None:
    gpus = [_gpu(ecc_aggregate=12), *EIGHT[1:]]
    assert instances.judge(_vm(), _found(gpus=gpus)).faults == ()


def test_without_dcgm_the_diagnostic_is_not_run_and_that_is_no_fault() -> None:
    found = _found(diagnostic={"ran": False, "error": "there is no dcgmi", "failures": []})
    check = instances.judge(_vm(), found)
    assert (check.diagnostic, check.faults) == ("not run", ())


def test_one_interface_is_judged_by_no_mtu_of_a_gpu_network() -> None:
    one = _found(interfaces=_interfaces(1, mtu=1460))
    assert instances.judge(_vm(interfaces=1), one).faults == ()


def test_gpus_that_count_no_errors_are_fine() -> None:
    t4 = {"acceleratorType": "zones/z/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}
    vm = _vm("n1-standard-8", 1, guestAccelerators=[t4])
    gpu = _gpu(name="Tesla T4", ecc_volatile=None, ecc_aggregate=None)
    check = instances.judge(vm, _found(gpus=[gpu], interfaces=_interfaces(1)))
    assert (check.ecc_errors, check.faults) == (None, ())


def test_a_machine_without_gpus_needs_no_nvidia_smi() -> None:
    found = _found(
        error="there is no nvidia-smi", gpus=[], interfaces=_interfaces(1), local_ssd={"disks": 0}
    )
    assert instances.judge(_vm("n1-standard-8", 1), found).faults == ()


@pytest.mark.parametrize(
    "nonsense",
    [
        {"gpus": "many", "diagnostic": [], "interfaces": None, "local_ssd": 7, "fabric": "x"},
        {},
    ],
)
def test_nonsense_is_a_fault_and_no_crash(nonsense: dict[str, Any]) -> None:
    assert "0 GPUs instead of 8" in instances.judge(_vm(), nonsense).faults


REPORTED = {"gpus": 8, "names": [H100] * 8, "driver": "580", "ecc_errors": 0, "interfaces": 9}


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({}, ()),
        ({"gpus": 7}, ("7 GPUs instead of 8",)),
        ({"names": ["Tesla T4"]}, ("Tesla T4 instead of H100",)),
        ({"ecc_errors": 3}, ("3 uncorrected memory (ECC) errors",)),
        ({"interfaces": 1}, ("1 network interfaces instead of 9",)),
    ],
)
def test_what_a_vm_reported_at_its_start_is_judged_likewise(
    change: dict[str, Any], faults: tuple[str, ...]
) -> None:
    assert instances.reported(_vm(), REPORTED | change).faults == faults


def test_a_part_of_a_gpu_is_one_gpu_by_the_name_of_its_driver() -> None:
    part = {"gpus": 1, "names": ["NVIDIA RTX Pro 6000 Blackwell DC-12Q"], "interfaces": 1}
    assert instances.reported(_vm("g4-standard-6", 1), REPORTED | part).faults == ()
    assert instances.reported(_vm("g4-standard-96", 1), REPORTED | part).faults != ()
