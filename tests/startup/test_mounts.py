"""Shares that everybody may write to, and caches that never fill the boot disk."""

from pathlib import Path

import pytest

from tests.startup.sandbox import VM
from tests.startup.test_boots import MOUNTS
from tests.startup.test_local_ssds import add_disks

SHARE = {**MOUNTS[1], "local_mount": "/mnt/nfs"}
CACHED = {
    **MOUNTS[0],
    "local_mount": "/mnt/data",
    "options": "allow_other,cache-dir=/mnt/localssd/gcsfuse,file-cache-max-size-mb=1024",
}


def _share(vm: VM, mode: int, *content: str) -> Path:
    """What the server exports: here it is the folder itself that is mounted."""
    folder = vm.disk / "mnt/nfs"
    folder.mkdir(parents=True)
    for name in content:
        (folder / name).mkdir()
    folder.chmod(mode)
    return folder


@pytest.mark.parametrize("content", [(), ("lost+found",)], ids=["empty", "as_ext4_makes_it"])
def test_everybody_may_write_to_a_share_that_was_just_made(
    vm: VM, content: tuple[str, ...]
) -> None:
    folder = _share(vm, 0o755, *content)
    vm.configure(mounts=[SHARE])

    vm.boot()

    assert vm.states()["mounts"] == "done"
    assert folder.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize(
    ("mode", "content"),
    [(0o755, ("lost+found", "results")), (0o750, ()), (0o777, ())],
    ids=["used", "closed", "open"],
)
def test_what_somebody_chose_for_a_share_stays(vm: VM, mode: int, content: tuple[str, ...]) -> None:
    folder = _share(vm, mode, *content)
    vm.configure(mounts=[SHARE])

    vm.boot()

    assert vm.states()["mounts"] == "done"
    assert folder.stat().st_mode & 0o7777 == mode


def test_a_mount_with_a_cache_comes_after_the_local_ssds(vm: VM) -> None:
    add_disks(vm, 1)
    vm.configure(mounts=[CACHED, SHARE], local_ssds=1)

    vm.boot()

    assert vm.states()["mounts"] == "done", vm.detail("mounts")
    cached, share = vm.read("etc/fstab").splitlines()[2:4]
    assert cached == (
        f"my-data /mnt/data gcsfuse {CACHED['options']}"
        ",_netdev,nofail,x-systemd.requires=aiinfra-local-ssd.service 0 0"
    )
    assert "x-systemd" not in share


def test_without_local_ssds_a_cache_does_not_go_to_the_boot_disk(vm: VM) -> None:
    vm.quicker["_LATE = 120"] = "_LATE = 1"
    vm.configure(mounts=[CACHED], local_ssds=1)

    vm.boot()

    assert vm.states()["mounts"] == "failed"
    assert "GCS_CACHE_GB needs the Local SSDs at /mnt/localssd" in vm.detail("mounts")
    assert "/mnt/data" not in vm.read("etc/fstab")
