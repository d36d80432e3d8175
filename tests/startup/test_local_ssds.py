"""The step local-ssd: RAID 0 on a new VM, found again after a reboot, never over what others wrote.

blkid and mkfs.ext4 are the real ones, on files in place of disks. The kernel's part is simulated:
mdadm writes the superblock that it would write, and a mount shows a folder that belongs to the file
system's UUID.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.startup.sandbox import VM
from tests.startup.stubs import MDADM

LINK = "google-local-nvme-ssd-"
SIZE = 4 << 20
OURS = {"local-ssd": "done", "startup": "done"}


def add_disks(vm: VM, count: int) -> list[Path]:
    """Give the VM empty Local SSDs, or make those that it has empty, as after a stop."""
    folder = vm.disk / "simulated/disks"
    folder.mkdir(exist_ok=True)
    disks = [folder / f"{LINK}{number}" for number in range(count)]
    for disk in disks:
        disk.write_bytes(b"")
        with disk.open("r+b") as file:
            file.truncate(SIZE)
    return disks


def _boot(vm: VM, disks: int, **config: object) -> None:
    """Boot with a command that looks at the mount, and adds a line to a file there."""
    (vm.disk / "var/lib/aiinfra/command.json").unlink(missing_ok=True)
    vm.configure(
        "stat -c '%a %n' /mnt/localssd >/out; findmnt -n -o FSROOT"
        " /mnt/localssd >>/out; echo here >>/mnt/localssd/data && cat /mnt/localssd/data >>/out;"
        " true",
        local_ssds=disks,
        **config,
    )
    vm.boot()


def _is_mounted(vm: VM) -> bool:
    return "filesystems" in vm.read("out")


def _states(vm: VM) -> dict[str, str]:
    return {name: vm.states()[name] for name in OURS}


def _mounts(vm: VM, disks: int) -> None:
    _boot(vm, disks)
    assert _states(vm) == OURS, vm.detail("local-ssd")


def _fails(vm: VM, disks: int) -> str:
    """What the step tells of it."""
    _boot(vm, disks)
    assert _states(vm) == {**OURS, "local-ssd": "failed"}
    return vm.detail("local-ssd")


@pytest.mark.parametrize("count", [1, 16])
def test_the_disks_of_a_new_vm_become_one_file_system_for_everybody(vm: VM, count: int) -> None:
    disks = add_disks(vm, count)

    _mounts(vm, count)
    assert "1777 /mnt/localssd\n" in vm.read("out")
    assert _is_mounted(vm)
    (mount,) = vm.calls("mount -t")
    device = "/dev/md/localssd" if count > 1 else f"/dev/disk/by-id/{LINK}0"
    assert mount == f"mount -t ext4 -o discard {device} /mnt/localssd"
    links = [f"/dev/disk/by-id/{disk.name}" for disk in disks]
    made = "mdadm --create /dev/md/localssd --name=localssd --homehost=any --level=0"
    wanted = [f"{made} --raid-devices={count} {' '.join(links)}"] if count > 1 else []
    assert vm.calls("mdadm") == wanted
    assert vm.read("etc/systemd/system/aiinfra-local-ssd.service")
    assert "systemctl enable aiinfra-local-ssd.service" in vm.calls()


@pytest.mark.parametrize("count", [1, 2])
def test_a_reboot_keeps_what_is_on_them(vm: VM, count: int) -> None:
    add_disks(vm, count)
    _boot(vm, count)

    _mounts(vm, count)
    assert vm.read("out").endswith("here\nhere\n")
    links = " ".join(f"/dev/disk/by-id/{LINK}{number}" for number in range(count))
    assembled = [f"mdadm --assemble /dev/md/localssd {links}"] if count > 1 else []
    assert vm.calls("mdadm") == assembled


def test_an_array_that_the_image_put_together_at_the_boot_is_found(vm: VM) -> None:
    add_disks(vm, 2)
    _boot(vm, 2)
    (vm.disk / f"sys/class/block/{LINK}0/holders/md127").mkdir(parents=True)
    (array,) = (vm.disk / "simulated/arrays").iterdir()
    vm.stubs["install"] = f'ln -sf /simulated/arrays/{array.name} /dev/md127; /usr/bin/install "$@"'

    _mounts(vm, 2)
    assert vm.calls("mdadm") == []
    assert "mount -t ext4 -o discard /dev/md127 /mnt/localssd" in vm.calls()
    assert vm.read("out").endswith("here\nhere\n")


@pytest.mark.parametrize("count", [1, 2])
def test_after_a_stop_they_are_empty_and_made_anew(vm: VM, count: int) -> None:
    add_disks(vm, count)
    _boot(vm, count)
    add_disks(vm, count)

    _mounts(vm, count)
    assert vm.read("out").count("here") == 1
    assert _is_mounted(vm)


def test_an_array_that_a_reset_left_without_a_file_system_gets_one(vm: VM) -> None:
    add_disks(vm, 2)
    vm.stubs["mkfs.ext4"] = "kill -KILL $PPID"
    _boot(vm, 2)
    assert _states(vm) == {**OURS, "local-ssd": "failed"}
    del vm.stubs["mkfs.ext4"]
    (vm.disk / "stubs/mkfs.ext4").unlink()

    _mounts(vm, 2)
    assert _is_mounted(vm)


def _foreign_file_system(disk: Path) -> None:
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-L", "mine", disk], check=True)


def _foreign_partitions(disk: Path) -> None:
    entry = struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), 2048, 2048)
    with disk.open("r+b") as file:
        file.seek(446)
        file.write(entry.ljust(64, b"\0") + b"\x55\xaa")


def _foreign_array(disk: Path) -> None:
    mdadm = [sys.executable, "-c", MDADM.partition("<<'PYTHON'\n")[2].partition("\nPYTHON")[0]]
    wanted = ["--create", "-", "--name=theirs", "--homehost=any", "--level=0", "--raid-devices=1"]
    subprocess.run([*mdadm, *wanted, str(disk)], check=True)


@pytest.mark.parametrize(
    ("count", "write", "words"),
    [
        (1, _foreign_file_system, "ext4 mine"),
        (2, _foreign_partitions, "partitions"),
        (2, _foreign_array, "linux_raid_member any:theirs"),
    ],
    ids=["file_system", "partitions", "array"],
)
def test_disks_of_which_one_holds_anything_else_are_never_written_to(
    vm: VM, count: int, write: Callable[[Path], None], words: str
) -> None:
    disks = add_disks(vm, count)
    write(disks[0])
    before = [disk.read_bytes() for disk in disks]

    _boot(vm, count)

    assert [disk.read_bytes() for disk in disks] == before
    assert _states(vm) == {**OURS, "local-ssd": "failed"}
    said = vm.detail("local-ssd")
    assert f"/dev/disk/by-id/{disks[0].name} ({words})" in said
    assert "sudo wipefs --all" in said
    assert not _is_mounted(vm)


def test_a_disk_that_was_swapped_for_an_empty_one_is_told_and_nothing_is_written(vm: VM) -> None:
    disks = add_disks(vm, 2)
    _boot(vm, 2)
    disks[1].write_bytes(bytes(SIZE))
    before = [disk.read_bytes() for disk in disks]

    _boot(vm, 2)

    assert [disk.read_bytes() for disk in disks] == before
    assert f"/dev/disk/by-id/{disks[1].name} (empty)" in vm.detail("local-ssd")


def test_disks_that_come_late_are_waited_for_and_no_smaller_array_is_made(vm: VM) -> None:
    late = add_disks(vm, 3)[2]
    aside = late.rename(late.with_name("late"))
    link = f"/dev/disk/by-id/{late.name}"
    vm.quicker["_LATE = 120"] = "_LATE = 1"

    _boot(vm, 3)

    assert "2 of 3 are there" in vm.detail("local-ssd")
    assert not _is_mounted(vm)
    early = [aside.with_name(f"{LINK}{number}").read_bytes() for number in (0, 1)]
    assert not b"".join(early).strip(b"\0")
    # Its link comes while the step waits.
    vm.stubs["install"] = (
        f'(sleep 1; ln -s /simulated/disks/late {link}) >/dev/null 2>&1 & /usr/bin/install "$@"'
    )
    vm.stubs["sleep"] = '/usr/bin/sleep "$@"'
    vm.quicker["_LATE = 120"] = "_LATE = 60"

    _mounts(vm, 3)
    assert "--raid-devices=3" in vm.calls("mdadm")[0]


def test_an_array_that_udev_has_not_started_is_not_taken_for_a_new_one(vm: VM) -> None:
    add_disks(vm, 2)
    _boot(vm, 2)
    (vm.disk / f"sys/class/block/{LINK}0/holders/md127").mkdir(parents=True)
    # As the kernel shows one: it has no bytes yet.
    vm.stubs["install"] = 'touch /dev/md127; /usr/bin/install "$@"'

    _mounts(vm, 2)
    assert [call.split()[1] for call in vm.calls("mdadm")] == ["--stop", "--assemble"]
    assert vm.read("out").endswith("here\nhere\n")


def test_an_array_of_fewer_bytes_than_its_disks_is_left_as_it_is(vm: VM) -> None:
    add_disks(vm, 2)
    _boot(vm, 2)
    (array,) = (vm.disk / "simulated/arrays").iterdir()
    array.write_bytes(bytes(SIZE))

    _fails(vm, 2)
    assert "sudo mdadm --detail /dev/md/localssd" in vm.detail("local-ssd")
    assert not array.read_bytes().strip(b"\0")


def test_a_cache_that_somebody_has_put_in_the_way_is_not_written_through(vm: VM) -> None:
    add_disks(vm, 1)
    _boot(vm, 1)
    (filesystem,) = (vm.disk / "simulated/filesystems").iterdir()
    (filesystem / "gcsfuse").rmdir()
    (filesystem / "gcsfuse").symlink_to("/etc")

    _boot(vm, 1)

    assert "/mnt/localssd/gcsfuse is not root's" in vm.detail("local-ssd")


def test_an_array_of_which_a_disk_is_gone_is_told(vm: VM) -> None:
    disks = add_disks(vm, 2)
    _boot(vm, 2)
    disks[1].unlink()
    vm.quicker["_LATE = 120"] = "_LATE = 1"

    _fails(vm, 2)
    assert not _is_mounted(vm)


def test_mdadm_is_installed_where_several_disks_need_it(vm: VM) -> None:
    add_disks(vm, 2)
    (vm.disk / "simulated/mdadm").write_text(f"#!/bin/bash\n{vm.stubs.pop('mdadm')}")

    _mounts(vm, 2)
    (call,) = vm.calls("apt-get")
    assert call.endswith("install --no-install-recommends mdadm")


def test_the_service_and_the_start_up_script_never_make_them_both(vm: VM) -> None:
    add_disks(vm, 2)
    vm.stubs["install"] = (
        "env PYTHONPATH=/opt/aiinfra/lib python3 -S -m aiinfra_vm.localssd prepare </dev/null"
        ' >/service 2>&1 &\n/usr/bin/install "$@"'
    )
    vm.stubs["mdadm"] = f"/usr/bin/sleep 2\n{MDADM}"

    _mounts(vm, 2)
    assert vm.read("service") == ""
    (made,) = vm.calls("mdadm")
    assert "--create" in made


def test_what_the_image_has_mounted_there_stays(vm: VM) -> None:
    add_disks(vm, 2)
    vm.stubs["install"] = (
        "mkdir -p /mnt/localssd /theirs; /usr/bin/mount --bind /theirs /mnt/localssd\n"
        '/usr/bin/install "$@"'
    )

    _boot(vm, 2)

    assert _states(vm) == OURS
    assert vm.calls("mdadm") == []


def test_the_document_has_the_disks_and_the_size(vm: VM) -> None:
    add_disks(vm, 2)
    (vm.disk / f"simulated/disks/{LINK}0-part1").touch()

    _boot(vm, 2)

    told = json.loads(vm.read("var/log/aiinfra/step-local-ssd.log").splitlines()[-1])
    size, free = told.pop("bytes"), told.pop("free")
    assert told == {"disks": 2, "expected": 2, "mounted": True}
    assert size >= free > 0
