"""The real start-up script on the real system of each Debian release: what stand-ins can't show.

One VM has all at once that went wrong at somebody's first boot; then it is turned off and on.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.running import ran
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site
from tests.startup.namespaces import INTERNET
from tests.startup.roots import Root
from tests.startup.sandbox import IMAGE, SCRIPT
from tests.startup.test_boots import MOUNTS
from tests.waiting import until

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
DOCKER = """[[ $1 != info ]] || echo '{"nvidia": {}}'"""
BIND = '#!/bin/bash\nexec mount --bind /srv/share "$2"\n'


@dataclass(frozen=True)
class Boot:
    """What one boot has come to."""

    ended: subprocess.CompletedProcess[str]  # how the start-up script ended, with its journal
    states: dict[str, str]  # the state of the whole and of each step
    mounted: list[str]  # the file systems at the mount points
    apt: str  # what `apt-get update` says afterwards; it must succeed
    mounts: str  # what the step mounts has said


Everything = tuple["DebianVM", Boot, Boot]


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
def group(site: Site, root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group of one VM."""
    with Group(site, tmp_path_factory.mktemp("everything"), root) as made:
        made.set_size(1)
        yield made


@pytest.fixture(scope="module")
def everything(group: Group, root: Root) -> Everything:
    """A VM with everything, and what its first and its second boot have come to."""
    vm = group.vm("train-vm-1")
    vm.write("etc/systemd/system/somebody-else.service", SOMEBODY_ELSE)
    vm.enable("somebody-else.service")
    vm.write("etc/apt/apt.conf.d/90image", 'APT::Install-Recommends "false";\n' + AS_A_SHARE)
    vm.write("simulated/mount.nfs", BIND, 0o755)
    (vm.disk / "srv/share").mkdir(parents=True)
    vm.write(NVIDIAS_KEY, (root.sources / "key.asc").read_text())
    repository = NVIDIAS.format(key=NVIDIAS_KEY, at=f"debian{root.release.number}/x86_64/")
    vm.write("etc/apt/sources.list.d/nvidia-of-the-image.list", repository)
    for name in set(IMAGE["files"]) - {"etc/profile", "etc/profile.d/env.sh"}:
        vm.write(name, "\n".join([*IMAGE["files"][name], ""]))
    vm.configure("echo begun >>/out", mounts=MOUNTS, ops_agent=True, name_prefix="np-bake")
    vm.stubs |= {"docker": DOCKER, "nvidia-ctk": ""}
    first = _booted(vm)
    vm.turn_off()
    return vm, first, _booted(vm)


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


def test_what_the_image_sets_for_gib_reaches_no_shell_no_unit_and_no_program(
    everything: Everything,
) -> None:
    vm, _, _ = everything

    linker = "cat /etc/ld.so.conf.d/*"
    for how in ("env", "bash -lc env", "systemd-run --quiet --pipe --wait env", linker):
        said = vm.run(how)
        assert said
        assert [line for line in said.splitlines() if "NCCL_" in line or "gib" in line] == []


def test_no_unit_of_ours_has_failed(everything: Everything) -> None:
    vm, _, _ = everything

    assert "aiinfra" not in vm.run("systemctl list-units --failed --plain --no-legend")


# ------------------------------------------------------------------ an image is made of it

TASK = {"id": "seal-1", "kind": "seal", "arguments": {"image": ""}, "seconds": 120}
SECRET = "nobody-else-may-read-this"  # noqa: S105 - it is made up
SECRETS = (
    "root/.docker/config.json", "home/ann/.ssh/id_rsa", "var/log/app.log", "root/.ssh/key",
    "etc/slurm/slurm.key", "var/lib/slurm/slurmctld/job_state",
)  # fmt: skip
NOTHING_TO_INSTALL = ("apt-get", "pip")


def _sealed(group: Group, vm: DebianVM) -> dict[str, Any]:
    """Ask a VM to seal itself, as Bake does, and turn it off; what it has answered."""
    vms = {vm.name: vm.server.values["id"]}
    vm.server.values["attributes/startup-script"] = SCRIPT.read_text("utf-8")
    group.write("vms/task.json", json.dumps(TASK | {"vms": vms}).encode())
    name = f"vms/results/{TASK['id']}/{vm.name}.json"

    def told() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(group.read(name) or b'{"state": "none"}')
        return found

    until(lambda: told()["state"] not in {"none", "running"}, told, pace=0.2)
    vm.turn_off()
    return told()


def _of_image(vm: DebianVM, image: Path) -> None:
    """Give a new VM the disk of another, with what its hypervisor tells it."""
    name, hosts = vm.read("etc/hostname"), vm.read("etc/hosts").splitlines(keepends=True)
    subprocess.run(["cp", "--archive", f"{image}/.", str(vm.disk)], check=True)  # noqa: S607
    vm.write("etc/hostname", name)
    (vm.disk / "etc/systemd/system/somebody-else.service").unlink()
    # Of the internet it reaches the state folder alone.
    reached = [it for it in hosts if INTERNET not in it or "storage.googleapis.com" in it]
    vm.write("etc/hosts", "".join(reached))
    vm.stubs |= dict.fromkeys(NOTHING_TO_INSTALL, "exit 1")
    vm.stubs["docker"] = DOCKER


def test_a_vm_of_an_image_that_was_made_of_another_installs_nothing_and_has_nothing_of_it(
    everything: Everything, group: Group, tmp_path: Path, site: Site, root: Root
) -> None:
    vm, _, _ = everything
    identity = "cat /etc/machine-id /etc/ssh/ssh_host_*.pub"
    first = vm.run(identity).splitlines()
    for name in SECRETS:
        vm.run(f"mkdir -p $(dirname /{name}) && echo {SECRET} >/{name}")

    answer = _sealed(group, vm)

    assert answer["state"] == "done", answer["detail"]
    assert answer["answer"]["programs"] == ["docker"]
    assert answer["answer"]["driver"]
    for text in (SECRET, json.loads(site.token)["access_token"], "echo begun"):
        found = ran(["grep", "-rlFe", text, str(vm.disk)])
        assert found.stdout == ""
    with Group(site, tmp_path, root) as others:
        others.set_size(1)
        other = others.vm("other-vm-1")
        _of_image(other, vm.disk)
        other.configure("echo begun >>/out-of-other", mounts=MOUNTS, ops_agent=True)
        booted = other.boot()
        assert booted.returncode == 0, booted.stdout
        until(lambda: other.states()["startup"] != "running", other.states, pace=0.2)
        assert set(other.states().values()) == {"done", "skipped"}, other.told
        assert [it for name in NOTHING_TO_INSTALL for it in other.calls(name)] == []
        assert other.told["number"] == 1
        second = other.run(identity).splitlines()
        assert len(second) == len(first)
        assert not set(second) & set(first)
        assert other.run("systemctl is-active ssh").strip() == "active"
        assert other.read("out-of-other") == "begun\n"
