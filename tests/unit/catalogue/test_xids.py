"""What NVIDIA's error numbers mean."""

from __future__ import annotations

from aiinfra_vm import gpu_health

from provision.catalogue import xids


def test_lines_of_the_driver_are_explained_each_meaning_once() -> None:
    off = "NVRM: Xid (PCI:0000:04:00): 79, pid=4711, GPU has fallen off the bus."
    switch = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 23001, Fatal, Link 12 Always Fatal"
    bus, link = xids.meanings([off, off, switch, "1 GPUs instead of 2"])
    assert bus == (
        "Xid 79: the GPU has fallen off the bus; another host: a restart of the VM is not enough"
    )
    assert link.startswith("SXid: an error of an NVSwitch")


def test_each_error_that_vms_tell_of_has_its_meaning() -> None:
    told = (number for number in range(1, 1000) if gpu_health._is_broken(number, "Fatal"))
    for number in told:
        assert xids.meanings([f"NVRM: Xid (PCI:0000:04:00): {number}, Fatal"]), number
