"""What start-up does and tells when a step fails: one failure at a time, at every step."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.startup.sandbox import VM
from tests.startup.test_boots import MOUNTS

BLOCKING = ["way-out", "mounts", "files", "gpu", "ray", "slurm", "command"]
FILES = {"object": "f/files/x.tar.gz", "sha256": "0" * 64, "destination": "/srv"}
RAY = {"version": "2.60.0"}
SLURM = {"slurm": {"partition": "g2"}}
NEW = {"slurmd": "echo slurm-wlm 24.11.5", "systemd-sysusers": ""}
# Programs of which a failure replaces a part only.
PARTLY = {"python3", "systemctl"}


@dataclass(frozen=True)
class Failure:
    """One thing that goes wrong."""

    step: str
    said: str  # words of what the step's guest attribute tells
    # the programs that go wrong, and what they do
    stub: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)  # what the VM is asked for
    command: str = "echo ran >/out"  # the start-up command


FAILURES = {
    "the_way_out_cannot_be_set_up": Failure(
        "way-out", "the way out could not be set up (HTTPS_PROXY, CA_BUNDLE, APT_MIRROR): Command",
        {"systemctl": "[[ $1 != set-environment ]] || exit 1\n"},
        {"outbound": {"proxy": "http://proxy.example.com:3128", "no_proxy": ""}},
    ),
    "a_bucket_cannot_be_mounted": Failure(
        "mounts", "could not mount /mnt/my data", {"mount": "exit 32"}, {"mounts": MOUNTS[:1]}
    ),
    "no_nfs_client_can_be_installed": Failure(
        "mounts", "E: no network", {"apt-get": "echo E: no network; exit 100"},
        {"mounts": MOUNTS[1:]},
    ),
    "the_archive_cannot_be_read": Failure(
        "files", "can't be read: HTTP Error 404", {}, {"files": FILES | {"object": "f/gone"}}
    ),
    "the_archive_is_another": Failure(
        "files", "checksum differs", {"sha256sum": "exit 1"}, {"files": FILES}
    ),
    "the_driver_never_comes": Failure(
        "gpu", "the NVIDIA driver does not answer", {"nvidia-smi": "exit 9"}
    ),
    "the_open_module_refuses_the_gpu": Failure(
        "gpu", "choose an image with the proprietary driver",
        {
            "nvidia-smi": "echo No devices were found; exit 6",
            "dmesg": "echo NVRM: is not supported by open nvidia.ko because it does not have GSP",
        },
    ),
    "a_gpu_is_missing": Failure(
        "gpu", "this VM has 1 GPU, not 2", {"nvidia-smi": "echo A100, 580.65, 0"}
    ),
    "an_interface_is_missing": Failure(
        "gpu", "this VM has 1 network interface, not 5", {}, {"interfaces": 5}
    ),
    "nvidia_smi_fails_at_the_query": Failure(
        "gpu", "returned non-zero exit status 6", {"nvidia-smi": "[[ $1 == -L ]] || exit 6"}
    ),
    "the_ops_agent_cannot_be_downloaded": Failure(
        "ops-agent", "the Ops Agent could not be installed",
        {"curl": 'case ${!#} in http://*) exec /usr/bin/curl "$@" ;; *) exit 22 ;; esac'},
        {"ops_agent": True},
    ),
    "nvidias_keyring_is_another": Failure(
        "ops-agent", "is not NVIDIA's: its checksum differs", {"sha256sum": "exit 1"},
        {"ops_agent": True},
    ),
    "dcgm_has_no_values": Failure(
        "ops-agent", "NVIDIA's DCGM gives no values", {"dcgmi": "echo GPU 0     N/A"},
        {"ops_agent": True},
    ),
    "the_others_do_not_come": Failure(
        "agent", "the ranks of the group are not complete",
        {"python3": "if [[ $3 == aiinfra_vm.peers ]]; then exit 1; fi\n"},
    ),
    "ray_cannot_be_installed": Failure(
        "ray", "Ray 2.60.0 could not be installed",
        {"python3": 'if [[ "$1 $2" == "-m venv" ]]; then exit 1; fi\n'}, {"ray": RAY},
    ),
    "ray_has_no_user": Failure(
        "ray", "the user aiinfra-ray could not be made", {"useradd": "exit 1"}, {"ray": RAY},
    ),
    "ray_finds_no_head": Failure(
        "ray", "this VM is not part of the Ray cluster",
        {"systemctl": "[[ $1 != start ]] || exit 1\n"}, {"ray": RAY},
    ),
    "slurm_cannot_be_installed": Failure(
        "slurm", "Slurm could not be installed", {"apt-get": "exit 100"}, SLURM,
    ),
    "slurm_is_too_old": Failure(
        "slurm", "this image's Slurm is 22.05.8; 23.11 or newer is needed: choose",
        {"slurmd": "echo slurm-wlm 22.05.8"}, SLURM,
    ),
    "a_number_of_slurms_users_is_anothers": Failure(
        "slurm", "the user aiinfra-job-63 has the number 1000, not 60663",
        {**NEW, "id": "echo 1000"}, SLURM,
    ),
    "slurm_finds_no_head": Failure(
        "slurm", "this VM is not part of the Slurm cluster",
        {**NEW, "id": "echo 60663", "systemctl": "[[ $1 != start ]] || exit 1\n"}, SLURM,
    ),
    "the_notebook_does_not_run": Failure(
        "notebook", "jupyter.service is not active",
        {"systemctl": "case $1 in cat) exit ;; is-active) exit 3 ;; esac\n"}, {"notebook": True},
    ),
    "the_command_fails": Failure(
        "command", "the last words\nSTARTUP_COMMAND ended with exit code 3", {}, {},
        "echo the last words; exit 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_is_told_and_stops_what_it_must(vm: VM, failure: Failure) -> None:
    for name, body in failure.stub.items():
        vm.stubs[name] = body + (vm.stubs[name] if name in PARTLY else "")
    vm.configure(failure.command, **failure.config)

    vm.server.objects["f/files/x.tar.gz"] = b"another"
    result = vm.boot()

    blocking = failure.step in BLOCKING
    by_script = blocking and failure.step != "command"
    assert failure.said in vm.detail(failure.step)
    assert vm.states()[failure.step] == "failed"
    assert result.returncode == (1 if by_script else 0)
    assert vm.states()["startup"] == ("failed" if blocking else "done")
    if blocking:
        assert vm.told["step"] == failure.step
        assert list(vm.states())[-1] == failure.step, "a step after it was begun"
    assert vm.exists("out") == (not blocking)


def test_what_failed_once_is_done_at_the_next_boot(vm: VM) -> None:
    healthy = vm.stubs["nvidia-smi"]
    vm.stubs["nvidia-smi"] = "exit 9"
    vm.configure("echo ran >>/out")
    assert vm.boot().returncode == 1

    vm.stubs["nvidia-smi"] = healthy

    assert vm.boot().returncode == 0
    assert vm.read("out") == "ran\n"


def test_the_ops_agent_is_tried_again_with_longer_pauses(vm: VM) -> None:
    vm.stubs["curl"] = 'case ${!#} in http://*) exec /usr/bin/curl "$@" ;; *) exit 22 ;; esac'
    vm.configure(ops_agent=True)

    vm.boot()

    calls = vm.calls()
    log = "/var/log/aiinfra/step-ops-agent.log"
    told = f"python3 -S -m aiinfra_vm.report end ops-agent failed {log}"
    step = calls[: calls.index(told)]
    pauses = [int(call.split()[1]) for call in step if call.startswith("sleep")]
    assert sum(pauses) == 240
    assert pauses[0] in (2, 3)
    assert pauses[1] in (4, 5, 6)
    assert 8 <= pauses[2] <= 12
    assert all(30 <= pause <= 45 for pause in pauses[4:-1])


def test_an_ops_agent_that_the_image_has_is_fine(vm: VM) -> None:
    (vm.disk / "simulated/google-cloud-ops-agent.service").touch()
    vm.configure(ops_agent=True)

    vm.boot()

    assert vm.states()["ops-agent"] == "done"
    assert vm.calls("installer") == []
    assert vm.exists("etc/google-cloud-ops-agent/config.yaml")


def test_a_step_that_hangs_is_ended(vm: VM) -> None:
    # timeout(1) is real; here every limit is a second.
    vm.stubs["timeout"] = (
        'if [[ $1 == --kill-after=30 && $2 != 0 ]]; then shift 2; set -- 1 "$@"; fi\n'
        'exec /usr/bin/timeout "$@"'
    )
    vm.stubs["systemctl"] = "[[ $1 != daemon-reload ]] || exec /usr/bin/sleep 60"
    vm.configure(ops_agent=False, ray=RAY)

    vm.boot()

    assert vm.states()["startup"] == "failed"
    assert "it took too long" in vm.detail(vm.told["step"])


def test_the_last_lines_of_a_long_output_are_told(vm: VM) -> None:
    vm.configure("for i in {1..99}; do printf '%0300dé%d\\n' 0 $i; done; printf '\\xff'; exit 1")

    vm.boot()

    detail = vm.detail("command")
    assert len(detail.encode()) <= 4000
    assert len(detail.splitlines()) <= 20
    assert detail.splitlines()[-3].endswith("é99")
    assert detail.splitlines()[-1].startswith("STARTUP_COMMAND ended with exit code 1, after")


def test_a_vm_that_gets_no_configuration_says_that_it_failed(vm: VM) -> None:
    vm.server.set_metadata({})

    assert vm.boot().returncode == 1

    assert vm.told["state"] == "failed"


def test_services_read_the_last_configuration_until_the_next_one_is_whole(vm: VM) -> None:
    vm.configure()
    assert vm.boot().returncode == 0
    before = vm.read("opt/aiinfra/config.json")
    payload = vm.server.values.pop("attributes/aiinfra-payload")
    vm.server.values["attributes/aiinfra-config"] = '{"local_ssds": 1}'

    assert vm.boot().returncode != 0

    assert vm.read("opt/aiinfra/config.json") == before
    vm.server.values["attributes/aiinfra-payload"] = payload
    vm.configure()
    assert vm.boot().returncode == 0
    assert not list((vm.disk / "opt/aiinfra").rglob("*.new"))


def test_guest_attributes_that_are_off_stop_nothing(vm: VM) -> None:
    vm.configure("echo ran >/out")
    vm.stubs["python3"] = (
        "if [[ $3 == aiinfra_vm.report ]]; then exit 1; fi\n" + vm.stubs["python3"]
    )

    assert vm.boot().returncode == 0
    assert vm.read("out") == "ran\n"
