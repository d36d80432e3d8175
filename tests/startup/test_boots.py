"""Each step of the real start-up script, at the first boot and at later ones."""

import hashlib
import io
import json
import tarfile

import pytest

from tests.startup.sandbox import SCRIPT, VM

MOUNTS = [
    {
        "server": "",
        "remote_path": "my-data",
        "local_mount": "/mnt/my data",
        "type": "gcsfuse",
        "options": "allow_other,implicit_dirs",
    },
    {
        "server": "10.0.0.2",
        "remote_path": "/share",
        "local_mount": "/mnt/nfs",
        "type": "nfs",
        "options": "rw,hard,nofail",
    },
]
ALL_STEPS = {
    "startup": "done",
    "way-out": "skipped",
    "local-ssd": "skipped",
    "mounts": "done",
    "files": "done",
    "gpu": "done",
    "fabric": "skipped",
    "ops-agent": "done",
    "agent": "done",
    "ray": "done",
    "slurm": "skipped",
    "notebook": "done",
    "command": "done",
}
COMMANDS = [
    pytest.param(r"""printf '%s' "it's \"quoted\" \\ \$HOME" >/out""", """it's "quoted" \\ $HOME""",
                 id="quotes_and_dollars"),
    pytest.param("printf '%s' \"${X:-größe ✓ 日本}\" >/out", "größe ✓ 日本", id="unicode"),
    pytest.param("printf one >/out\nprintf two >>/out", "onetwo", id="two_lines"),
    pytest.param("printf '%s' '`$(x)` %s ; & | <' >/out # end", "`$(x)` %s ; & | <",
                 id="what_shells_read"),
    pytest.param("cat >/out; pwd >>/out", "/\n", id="no_standard_input"),
    pytest.param(f": {'x' * 150_000}; printf long >/out", "long", id="longer_than_an_argument"),
]  # fmt: skip


def _archive(vm: VM) -> dict[str, str]:
    """Put an archive into the simulated bucket; what the configuration says of it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        script = tarfile.TarInfo("bin/train.sh")
        script.mode, script.size = 0o750, 5
        archive.addfile(script, io.BytesIO(b"true\n"))
        link = tarfile.TarInfo("train")
        link.type, link.linkname = tarfile.SYMTYPE, "bin/train.sh"
        archive.addfile(link)
    vm.server.objects["train-deployment/files/x.tar.gz"] = made.getvalue()
    return {
        "object": "train-deployment/files/x.tar.gz",
        "sha256": hashlib.sha256(made.getvalue()).hexdigest(),
        "destination": "/srv/my files",
    }


def _everything(vm: VM, command: str = "echo ran >>/out") -> None:
    (vm.disk / "simulated/jupyter.service").touch()
    vm.configure(
        command,
        mounts=MOUNTS,
        files=_archive(vm),
        ops_agent=True,
        notebook=True,
        ray={"version": "2.60.0"},
    )


def test_a_vm_with_everything_is_set_up_and_a_second_boot_repeats_nothing_that_is_done(
    vm: VM,
) -> None:
    _everything(vm)

    first = vm.boot()

    assert first.returncode == 0, first.stderr
    assert vm.states() == ALL_STEPS
    assert vm.read("etc/fstab") == (
        "UUID=1 / ext4 defaults 0 1\n"
        "# aiinfra: begin, written at each boot\n"
        "my-data /mnt/my\\040data gcsfuse allow_other,implicit_dirs,_netdev,nofail 0 0\n"
        "10.0.0.2:/share /mnt/nfs nfs rw,hard,nofail,_netdev 0 0\n"
        "# aiinfra: end\n"
    )
    assert (vm.disk / "srv/my files/bin/train.sh").stat().st_mode & 0o777 == 0o750
    assert (vm.disk / "srv/my files/train").readlink().as_posix() == "bin/train.sh"
    assert vm.read("opt/aiinfra/samples/training.py")
    assert vm.read("etc/systemd/system/aiinfra-ray.service")
    assert "RAY_AUTH_MODE=token" in vm.read("etc/profile.d/aiinfra-ray.sh")
    made = vm.calls("useradd")
    assert all("--system" in call for call in made)
    users = [call.rpartition(" ")[2] for call in made]
    assert users == ["aiinfra-job", "aiinfra-ray"]
    assert [f"chage --expiredate 1 {it}" for it in users] == vm.calls("chage")
    assert vm.read("etc/systemd/system/aiinfra-agent.service")
    assert vm.read("etc/profile.d/aiinfra.sh")
    fstab = vm.read("etc/fstab")
    (vm.disk / "srv/my files/bin/train.sh").write_text("changed\n")

    second = vm.boot()

    assert second.returncode == 0, second.stderr
    assert vm.states() == ALL_STEPS | {"command": "skipped"}
    assert vm.read("etc/fstab") == fstab
    assert vm.read("srv/my files/bin/train.sh") == "changed\n"
    assert vm.read("out") == "ran\n"
    for program in ("apt-get", "installer", "pip", "python3 -m venv", "useradd"):
        assert vm.calls(program) == []
    assert [call for call in vm.calls("mount ") if "/mnt" in call] == [
        "mount -- /mnt/my data",
        "mount -- /mnt/nfs",
    ]


def test_a_vm_with_nothing_says_why_each_step_was_skipped(vm: VM) -> None:
    vm.configure(gpus=None, state=None)

    assert vm.boot().returncode == 0

    skipped = {name: vm.detail(name) for name, state in vm.states().items() if state == "skipped"}
    assert skipped == {
        "way-out": "no proxy, certificates or mirrors are set",
        "local-ssd": "this VM has no Local SSD",
        "mounts": "no storage is mounted",
        "files": "no files were copied",
        "fabric": "this VM has no GPUs",
        "ops-agent": "DISABLE_OPS_AGENT is set",
        "agent": "the VMs share no folder (state_folder): no ranks, no jobs, no ssh between them",
        "ray": "ORCHESTRATOR_TYPE is not ray",
        "slurm": "ORCHESTRATOR_TYPE is not slurm",
        "notebook": "ENABLE_NOTEBOOK is no",
        "command": "STARTUP_COMMAND is not set",
    }
    assert vm.calls("nvidia-smi") == []


@pytest.fixture
def limited(vm: VM) -> VM:
    """A VM that tells as slowly as it does, before a Google that loses what is told too fast."""
    vm.quicker.clear()
    vm.configure()
    vm.server.limited = True
    return vm


def test_a_step_that_takes_its_time_is_seen_running(limited: VM) -> None:
    limited.stubs["systemctl"] = "[[ $* != *jupyter* || $1 != is-active ]] || sleep 20"
    limited.configure(notebook=True)

    limited.boot()

    told = [json.loads(text) for _, text in limited.server.written]
    assert (told[-1]["state"], told[-1]["step"]) == ("done", None)
    assert "notebook" in [one["step"] for one in told]


def test_what_is_told_stays_below_googles_rate_whatever_is_skipped(limited: VM) -> None:
    limited.boot()

    # Nothing takes any time here: the first and the last, which waits until it may be told.
    assert [name for name, _ in limited.server.written] == ["startup"] * 2
    assert sum(int(call.split()[1]) for call in limited.calls("sleep")) >= 12
    assert list(limited.states()) == list(ALL_STEPS)


def test_nothing_that_is_told_is_lost_where_steps_follow_each_other_fast(limited: VM) -> None:
    limited.stubs["systemctl"] = "sleep 3\n" + limited.stubs["systemctl"]
    limited.configure(mounts=MOUNTS, ops_agent=True, ray={"version": "2.60.0"})

    assert limited.boot().returncode == 0

    assert limited.server.lost == []
    assert limited.states()["startup"] == "done"
    assert len(limited.server.written) > 3


def test_a_last_word_that_google_lost_is_told_again(limited: VM) -> None:
    limited.server.drop = 2  # the first of the boot, and the last

    assert limited.boot().returncode == 0

    assert limited.states()["startup"] == "done"


def test_a_boot_is_counted_and_its_report_knows_nothing_of_the_last_ones(vm: VM) -> None:
    vm.configure("exit 3")
    vm.boot()
    first = vm.told

    vm.server.written.clear()
    vm.boot()

    began = json.loads(vm.server.written[0][1])
    assert (first["number"], first["state"]) == (1, "failed")
    assert (began["number"], began["state"], began["steps"]) == (2, "running", {})
    assert began["boot"] != first["boot"]


def test_the_gpu_check_is_reported(vm: VM) -> None:
    vm.boot()

    assert vm.told["gpu_check"] == {
        "gpus": 2,
        "names": ["NVIDIA A100-SXM4-40GB"] * 2,
        "driver": "580.65.06",
        "ecc_errors": 0,
        "interfaces": 1,
        "expected": {"gpus": 2, "interfaces": 1},
    }


def test_ecc_errors_are_told_and_are_unknown_where_a_gpu_has_no_ecc(vm: VM) -> None:
    vm.stubs["nvidia-smi"] = 'echo "Tesla T4, 570.1, 3"; echo "Tesla T4, 570.1, [N/A]"'
    vm.boot()
    assert vm.told["gpu_check"]["ecc_errors"] == 3

    vm.stubs["nvidia-smi"] = 'echo "Tesla T4, 570.1, [N/A]"; echo "Tesla T4, 570.1, [N/A]"'
    vm.boot()
    assert vm.told["gpu_check"]["ecc_errors"] is None


def test_the_driver_may_come_late(vm: VM) -> None:
    late = "echo >>/simulated/tries; (($(wc -l </simulated/tries) > 4)) || exit 9\n"
    vm.stubs["nvidia-smi"] = late + vm.stubs["nvidia-smi"]

    assert vm.boot().returncode == 0

    assert len(vm.calls("nvidia-smi -L")) == 5


@pytest.mark.parametrize(("command", "wanted"), COMMANDS)
def test_a_start_up_command_arrives_as_it_was_written(vm: VM, command: str, wanted: str) -> None:
    vm.configure(command)

    result = vm.boot()

    assert result.returncode == 0, vm.detail("command")
    assert vm.read("out") == wanted


def test_a_metadata_server_that_is_busy_is_asked_again(vm: VM) -> None:
    vm.server.refuse = 1

    assert vm.boot().returncode == 0


@pytest.mark.parametrize("os_updates", [True, False])
def test_updates_wait_while_a_command_or_job_runs_or_for_ever(vm: VM, *, os_updates: bool) -> None:
    vm.configure(os_updates=os_updates)
    vm.boot()

    said = vm.read("etc/systemd/system/apt-daily-upgrade.service.d/aiinfra.conf")
    assert ("cgroup.events" in said) is os_updates
    assert ("'false'" in said) is not os_updates
    assert "aiinfra-" in vm.read("etc/needrestart/conf.d/aiinfra.conf")


def test_the_script_is_never_templated() -> None:
    assert "${" + "jsonencode" not in SCRIPT.read_text()
    assert SCRIPT.read_text().startswith("#!/bin/bash\n")
