"""The real start-up script on the real system of each Debian release: what stand-ins can't show.

One VM has all at once that went wrong at somebody's first boot; then it is turned off and on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.startup.group import Group
from tests.startup.test_boots import MOUNTS
from tests.waiting import until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.startup.debian_vm import DebianVM
    from tests.startup.group import Site
    from tests.startup.roots import Root

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

# apt-get holds the lock on the lists while it runs what is to be run before an update.
SOMEBODY_ELSE = """\
[Unit]
Before=google-startup-scripts.service
[Service]
Type=exec
ExecStart=/usr/bin/apt-get -o "APT::Update::Pre-Invoke::=sleep 20" update
[Install]
WantedBy=multi-user.target
"""
NVIDIAS_KEY = "/usr/share/keyrings/nvidia-of-the-image.asc"
NVIDIAS = "deb [signed-by={key}] https://developer.download.nvidia.com/compute/cuda/repos/{at} /\n"
# The NFS client is Debian's, but for the program that would ask another machine for the share.
AS_A_SHARE = (
    'DPkg::Post-Invoke {"[ ! -e /sbin/mount.nfs ] || cp /simulated/mount.nfs /sbin/mount.nfs";};\n'
)
BIND = '#!/bin/bash\nexec mount --bind /srv/share "$2"\n'


@dataclass(frozen=True)
class Boot:
    """What one boot has come to.

    Attributes:
        ended: How the start-up script ended, with its journal.
        states: The state of the whole and of each step.
        mounted: The file systems at the mount points.
        apt: What `apt-get update` says afterwards; it must succeed.
        mounts: What the step mounts has said.
    """

    ended: subprocess.CompletedProcess[str]
    states: dict[str, str]
    mounted: list[str]
    apt: str
    mounts: str


def _booted(vm: DebianVM) -> Boot:
    ended = vm.boot()
    # What is told waits on the VM, so that Google takes it; the command's end comes later as well.
    until(lambda: vm.states()["startup"] != "running", vm.states, pace=0.2)
    mounted = json.loads(vm.run("findmnt --json --list --output TARGET"))["filesystems"]
    points = [it["target"] for it in mounted if it["target"].startswith("/mnt/")]
    vm.run("while systemctl --quiet is-active somebody-else; do sleep 0.2; done")
    apt = vm.run("apt-get update 2>&1")
    return Boot(ended, vm.states(), points, apt, vm.read("var/log/aiinfra/step-mounts.log"))


@pytest.fixture(scope="module")
def everything(
    site: Site, root: Root, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DebianVM, Boot, Boot]]:
    """A VM with everything, and what its first and its second boot have come to."""
    with Group(site, tmp_path_factory.mktemp("everything"), root) as group:
        group.set_size(1)
        vm = group.vm("train-vm-1")
        vm.write("etc/systemd/system/somebody-else.service", SOMEBODY_ELSE)
        vm.enable("somebody-else.service")
        vm.write("etc/apt/apt.conf.d/90image", 'APT::Install-Recommends "false";\n' + AS_A_SHARE)
        vm.write("simulated/mount.nfs", BIND, 0o755)
        (vm.disk / "srv/share").mkdir(parents=True)
        vm.write(NVIDIAS_KEY, (root.sources / "key.asc").read_text())
        repository = NVIDIAS.format(key=NVIDIAS_KEY, at=f"debian{root.release.number}/x86_64/")
        vm.write("etc/apt/sources.list.d/nvidia-of-the-image.list", repository)
        vm.configure("echo begun >>/out", mounts=MOUNTS, ops_agent=True)
        first = _booted(vm)
        vm.turn_off()
        yield vm, first, _booted(vm)


Everything = tuple["DebianVM", Boot, Boot]


def test_a_vm_is_set_up_and_is_so_after_a_reboot(everything: Everything) -> None:
    _, first, second = everything

    for boot in (first, second):
        assert boot.ended.returncode == 0, boot.ended.stderr
        assert "failed" not in boot.states.values()


def test_apt_is_waited_for_while_another_apt_get_holds_the_lists(everything: Everything) -> None:
    _, first, _ = everything

    assert "Could not get lock" in first.mounts
    assert first.states["mounts"] == "done"


def test_storage_is_mounted_by_systemd_at_the_second_boot(everything: Everything) -> None:
    vm, first, second = everything

    assert sorted(first.mounted) == sorted(second.mounted) == ["/mnt/my data", "/mnt/nfs"]
    assert [call for call in vm.calls("mount.gcsfuse") if "/mnt/my data" in call] != []
    assert vm.run("systemctl show --value --property ActiveState 'mnt-nfs.mount'") == "active\n"


def test_apt_works_and_has_no_source_more_than_the_image_had(everything: Everything) -> None:
    vm, first, second = everything

    for said in (first.apt, second.apt):
        assert "W:" not in said
        assert "E:" not in said
    assert sorted(vm.run("ls /etc/apt/sources.list.d").split()) == [
        "debian.list",
        "nvidia-of-the-image.list",
    ]


def test_dcgm_has_its_library_and_its_module_though_the_image_takes_no_recommended_packages(
    everything: Everything,
) -> None:
    vm, first, _ = everything

    assert first.states["ops-agent"] == "done"
    assert vm.run("readlink /usr/lib/x86_64-linux-gnu/libdcgm.so") == "libdcgm.so.4\n"
    assert vm.run("ls /usr/lib/x86_64-linux-gnu/libdcgmmoduleprofiling.so.4")
    assert vm.run("systemctl is-active nvidia-dcgm google-cloud-ops-agent") == "active\nactive\n"


def test_updates_by_the_image_go_on_once_start_up_is_over(everything: Everything) -> None:
    vm, _, _ = everything

    assert vm.run("systemctl is-active apt-daily.timer apt-daily-upgrade.timer") == (
        "active\nactive\n"
    )
    assert "masked" not in vm.run(
        "systemctl is-enabled apt-daily.service apt-daily-upgrade.service || true"
    )
    assert "apt-daily-upgrade.service" in vm.run(
        "journalctl --boot --no-pager --output cat --identifier systemctl --unit"
        " google-startup-scripts.service || true"
    )


def test_a_command_that_may_run_once_has_run_once(everything: Everything) -> None:
    vm, _, second = everything

    assert vm.read("out") == "begun\n"
    assert second.states["command"] == "skipped"


def test_no_unit_of_ours_has_failed(everything: Everything) -> None:
    vm, _, _ = everything

    assert "aiinfra" not in vm.run("systemctl list-units --failed --plain --no-legend")
