from provision.catalogue import xids


def test_lines_of_the_driver_are_explained_each_meaning_once() -> None:
    off = "NVRM: Xid (PCI:0000:04:00): 79, pid=4711, GPU has fallen off the bus."
    switch = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 23001, Fatal, Link 12 Always Fatal"
    bus, link = xids.meanings([off, off, switch, "1 GPUs instead of 2"])
    assert bus == (
        "Xid 79: the GPU has fallen off the bus; another host: a restart of the VM is not enough"
    )
    assert link.startswith("SXid: an error of an NVSwitch")
