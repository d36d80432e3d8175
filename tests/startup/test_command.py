"""The user's command as a unit: attempts, reboots, what it finds, what it is told of the end."""

import json
import time
from collections.abc import Callable

import pytest

from tests.startup.sandbox import VM

# They wait for processes of other processes, on machines that may have much else to do.
pytestmark = pytest.mark.timeout(400)

LOG = "var/log/aiinfra/command.log"
KEPT = "var/lib/aiinfra/command.json"
QUICK = {
    "_FIRST_PAUSE = 10.0": "_FIRST_PAUSE = 0.05",
    "_SECONDS_BETWEEN = 0.5": "_SECONDS_BETWEEN = 0.05",
    "_PAUSE = 15.0": "_PAUSE = 0.05",
    "_GAP = 12.0": "_GAP = 0.0",
    "_LOOK = 3.0": "_LOOK = 0.05",
}
# Says when it has begun; its first attempt never ends by itself.
LASTING = "echo begun >>/out; [[ $(wc -l </out) -gt 1 ]] || sleep 60; echo through"


def _step(vm: VM) -> dict[str, object]:
    step = vm.told["steps"]["command"]
    assert isinstance(step, dict)
    return step


def _restarting(vm: VM, command: str, restart: str, **config: object) -> None:
    vm.quicker |= QUICK
    vm.configure(command, restart=restart, **config)


def _ran(vm: VM, command: str, restart: str, **config: object) -> None:
    _restarting(vm, command, restart, **config)
    vm.boot()


def _shut_down(vm: VM) -> None:
    running = vm.start()
    vm.await_text("out", "begun")
    vm.shut_down(running)


def _cut_power(vm: VM) -> None:
    running = vm.start()
    vm.await_text("out", "begun")
    vm.cut_power(running)


ENDS = [
    pytest.param(_shut_down, "it was stopped: the VM goes down", id="reboot"),
    pytest.param(_cut_power, "it was cut off when the VM went down", id="power_cut"),
]


@pytest.mark.parametrize(("end", "said"), ENDS)
def test_one_that_a_reboot_ended_is_not_begun_again_and_that_is_a_failure(
    vm: VM, end: Callable[[VM], None], said: str
) -> None:
    _restarting(vm, LASTING, "never")
    end(vm)

    vm.boot()

    assert vm.read("out") == "begun\n"
    assert vm.states()["startup"] == vm.states()["command"] == "failed"
    assert said in vm.detail("command")
    assert "STARTUP_RESTART is never" in vm.detail("command")


@pytest.mark.parametrize("restart", ["on-failure", "always"])
@pytest.mark.parametrize(("end", "said"), ENDS)
def test_one_that_a_reboot_ended_is_begun_again_where_that_was_asked_for(
    vm: VM, end: Callable[[VM], None], said: str, restart: str
) -> None:
    _restarting(vm, LASTING, restart)
    end(vm)

    running = vm.start()
    vm.await_text(LOG, "through")
    vm.await_text(KEPT, '"state": "done"')
    vm.shut_down(running)

    assert vm.read("out").startswith("begun\nbegun\n")
    assert said not in vm.read(LOG).partition("through")[2]
    log = vm.read(LOG)
    assert log.index("attempt 1 begins") < log.index("attempt 2 begins") < log.index("through")


def test_the_log_is_not_cut_by_a_reboot_nor_by_the_step(vm: VM) -> None:
    _ran(vm, "echo words of the first boot; exit 3", "never")

    vm.boot()

    assert "words of the first boot" in vm.read(LOG)
    assert "it ended with exit code 3 before, and is not begun again" in vm.detail("command")
    assert "words of the first boot" in vm.detail("command"), "the last lines are told anew"
    assert _step(vm)["state"] == "failed"
    assert vm.states()["startup"] == "failed"


def test_what_failed_is_begun_again_with_growing_pauses_until_it_succeeds(vm: VM) -> None:
    _ran(vm, "echo again >>/out; [[ $(wc -l </out) -gt 3 ]] && exit; kill -KILL $$", "on-failure")

    assert vm.read("out") == "again\n" * 4
    assert (_step(vm)["state"], _step(vm)["attempt"]) == ("done", 4)
    assert vm.states()["startup"] == "done"
    steps = [json.loads(text)["steps"] for _, text in vm.server.written]
    told = [it["command"] for it in steps if "command" in it]
    failing = [it for it in told if it["state"] == "failing"]
    assert [(it["failures"], it["code"]) for it in failing] == [(1, 137), (2, 137), (3, 137)]
    assert "STARTUP_COMMAND ended with exit code 137 (SIGKILL)" in failing[0]["detail"]
    pauses = [float(it["detail"].split("begun again after ")[1].split()[0]) for it in failing]
    for said, pause in zip(pauses, (0.05, 0.1, 0.2), strict=True):
        assert 0.5 * pause - 0.01 <= said <= 1.5 * pause + 0.01
    assert len(told) == 5, "one report for each attempt that fails at once"
    vm.boot()
    assert vm.detail("command") == "it ran before"


def test_always_begins_again_after_a_success_too_and_at_each_boot(vm: VM) -> None:
    _restarting(vm, "echo ran >>/out", "always")
    for lines in (3, 6):
        running = vm.start()
        vm.await_text("out", "ran\n" * lines)
        vm.shut_down(running)

    assert _step(vm)["state"] != "failed"


def test_what_a_failed_attempt_left_behind_is_gone_before_the_next(vm: VM) -> None:
    _ran(
        vm,
        "[[ -e /out ]] && { ps -e -o args= | grep -c '[s]leep 77' >/left; exit 0; };"
        " touch /out; setsid sleep 77 & exit 1",
        "on-failure",
    )

    assert vm.read("left") == "0\n"


def test_each_attempt_has_the_environment_of_its_moment(vm: VM) -> None:
    _restarting(
        vm,
        "echo $NODE_RANK of $NNODES, $PET_NNODES $JAX_PROCESS_ID, $NCCL_DEBUG >>/out;"
        " echo NODE_RANK=1 >/run/aiinfra/peers.env; echo NNODES=2 >>/run/aiinfra/peers.env;"
        " [[ $NODE_RANK == 1 ]]",
        "on-failure",
    )
    # What other steps write; the last one before the command's is as good as any.
    vm.stubs["systemctl"] = (
        "mkdir -p /run/aiinfra /etc/aiinfra; [[ -e /run/aiinfra/peers.env ]] || "
        "printf 'NODE_RANK=0\\nNNODES=2\\n' >/run/aiinfra/peers.env;"
        "printf '# of the fabric\\nNCCL_DEBUG=\"WARN\"\\n' >/etc/aiinfra/nccl.env\n"
    ) + vm.stubs["systemctl"]

    vm.boot()

    assert vm.read("out") == "0 of 2, 2 0, WARN\n1 of 2, 2 1, WARN\n"


def test_programs_of_ray_are_found_where_it_is(vm: VM) -> None:
    vm.configure(
        "echo $PATH $HOME $RAY_AUTH_TOKEN_PATH >/out; env | grep -c PYTHONPATH >>/out",
        ray={"version": "2.60.0"},
    )

    vm.boot()

    assert vm.read("out").startswith("/opt/aiinfra/ray/bin:/opt/conda/bin:/usr/local/")
    assert vm.read("out").endswith("/snap/bin /root /run/aiinfra-ray/token\n0\n")


def test_secrets_are_read_for_each_attempt_and_in_no_log(vm: VM) -> None:
    resource = "projects/p/secrets/s/versions/latest"
    vm.server.values["service-accounts/default/token"] = '{"access_token": "token-of-the-vm"}'
    vm.server.secrets = {resource: b"the-secret-value"}
    _ran(
        vm,
        "echo it is $S; [[ ${#S} == 16 && -e /out ]] || { touch /out; exit 1; }",
        "on-failure",
        secrets=[{"name": "S", "resource": resource}],
    )

    assert _step(vm)["attempt"] == 2
    assert vm.read(LOG).count("it is ***") == 2
    assert "the-secret-value" not in vm.read(LOG) + vm.read("simulated/journal")


# A program that takes a moment for its checkpoint, and whose helper must outlive that.
SAVING = """
exec 2>&1
python3 -c '
import signal, subprocess, sys, time
print("what tee is there for", flush=True)
helper = subprocess.Popen(["sleep", "50"])
def save(*_):
    time.sleep(0.3)
    print("saved, the helper has ended:", helper.poll(), flush=True)
    helper.kill()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("/out", "a").write("begun\\n")
time.sleep(50)
' | tee /copy
echo the next line
"""


def test_a_shutdown_gives_the_program_sigterm_and_the_time_to_save(vm: VM) -> None:
    _restarting(vm, SAVING, "on-failure")

    _shut_down(vm)

    log = vm.read(LOG)
    assert "SIGTERM: the VM goes down" in log
    assert "saved, the helper has ended: None\n" in log
    assert "saved" in vm.read("copy"), "tee was ended before"
    assert "the next line" not in log
    assert json.loads(vm.read(KEPT))["state"] == "stopped"
    assert _step(vm)["state"] == "stopped"
    assert "attempt 2" not in log


# torchrun, as far as this matters: it kills its workers soon after it was told itself. A worker
# has a helper, as those that load data are, which has LOCAL_RANK too.
TORCHRUN = """
exec 2>&1
cat >/worker.py <<'PYTHON'
import os, signal, subprocess, sys, time
helper = subprocess.Popen(["sleep", "50"])
def save(*_):
    time.sleep(2)
    print("rank", os.environ["LOCAL_RANK"], "saved, helper:", helper.poll(), flush=True)
    helper.kill()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("/out", "a").write("begun\\n")
time.sleep(50)
PYTHON
python3 -c '
import os, signal, subprocess, sys, time
workers = [
    subprocess.Popen(["python3", "/worker.py"], env={**os.environ, "LOCAL_RANK": str(rank)})
    for rank in range(2)
]
def end(*_):
    print("torchrun was told", flush=True)
    time.sleep(0.5)
    for worker in workers: worker.kill()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
sys.exit(max(worker.wait() for worker in workers))
'
"""


def test_workers_of_torchrun_are_told_before_it_kills_them(vm: VM) -> None:
    _restarting(vm, TORCHRUN, "on-failure")
    running = vm.start()
    vm.await_text("out", "begun\nbegun")
    vm.shut_down(running)

    log = vm.read(LOG)
    # A busy torchrun may still be there when its workers are done, and is told then.
    before, _, _ = log.partition("torchrun was told")
    assert {f"rank {rank} saved, helper: None" for rank in (0, 1)} <= set(before.splitlines())


NOTICES = [
    pytest.param({"preempted": "TRUE"}, "Google takes this VM back", id="preemption"),
    pytest.param(
        {"upcoming-maintenance": '{"maintenance_status": "ONGOING"}'},
        "Google stops this VM to maintain its host", id="maintenance",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("values", "said"), NOTICES)
def test_a_notice_of_googles_gives_it_sigterm_and_nothing_is_begun_after_it(
    vm: VM, values: dict[str, str], said: str
) -> None:
    _restarting(vm, SAVING, "always")
    vm.server.values |= {"preempted": "FALSE", "upcoming-maintenance": "{ }"}
    running = vm.start()
    vm.await_text("out", "begun")
    time.sleep(0.2)
    assert "SIGTERM" not in vm.read(LOG)

    vm.server.values |= values
    running.communicate(timeout=200)

    assert f"SIGTERM: {said}" in vm.read(LOG)
    assert "saved, the helper has ended: None" in vm.read(LOG)
    assert _step(vm)["state"] == "stopped"
    assert said in vm.detail("command")
    assert "attempt 2" not in vm.read(LOG)


def test_a_runner_that_is_killed_is_a_failure_of_the_attempt(vm: VM) -> None:
    _ran(vm, "echo begun >>/out; [[ $(wc -l </out) -gt 1 ]] || kill -KILL $PPID", "on-failure")

    assert vm.read("out") == "begun\nbegun\n"
    assert _step(vm)["state"] == "done"


def test_a_runner_that_is_killed_is_not_begun_again_unasked(vm: VM) -> None:
    vm.configure("echo begun >>/out; kill -KILL $PPID; sleep 50")

    vm.boot()

    assert vm.read("out") == "begun\n"
    assert "the program that runs it was killed" in vm.detail("command")
    assert vm.states()["startup"] == "failed"


def test_the_log_is_put_aside_when_it_is_large(vm: VM) -> None:
    vm.quicker |= {"_LARGEST = 100 * 2**20": "_LARGEST = 5000"}
    vm.configure(
        "for i in {1..300}; do printf '%099d\\n' $i; [[ $((i % 20)) -gt 0 ]] || sleep 0.02; done"
    )

    vm.boot()

    kept = [LOG, *(f"{LOG}.{number}" for number in (1, 2, 3))]
    assert all(vm.exists(path) for path in kept)
    assert not vm.exists(f"{LOG}.4")
    lines = [
        int(line)
        for path in reversed(kept)
        for line in vm.read(path).splitlines()
        if line.isdigit()
    ]
    assert lines == list(range(lines[0], 301)), "a line is missing"


def test_a_full_disk_does_not_end_the_command(vm: VM) -> None:
    vm.stubs["systemctl"] = (
        "[[ $1 != daemon-reload || ! -e /etc/systemd/system/aiinfra-command.service ]] ||"
        " /usr/bin/mount -t tmpfs -o size=4k full /var/log/aiinfra\n"
    ) + vm.stubs["systemctl"]
    vm.configure("for i in {1..50}; do printf '%0999d\\n' $i; done; echo through >/out")

    vm.boot()

    assert vm.read("out") == "through\n"
    assert "00050\n" in vm.read("simulated/journal")


def test_a_failed_step_shows_its_output_on_the_console(vm: VM) -> None:
    vm.stubs["nvidia-smi"] = "echo what only the log had; exit 9"

    booted = vm.boot()

    assert "aiinfra: gpu: what only the log had\n" in booted.stderr
    assert "aiinfra: gpu: the NVIDIA driver does not answer" in booted.stderr


def test_the_start_up_script_does_not_wait_for_the_command(vm: VM) -> None:
    vm.configure("echo begun >>/out; sleep 60")
    running = vm.start()
    vm.await_text("out", "begun")

    # Its lock is free: the script is over, though the command runs.
    vm.cut_power(running)

    assert running.stderr is not None
    assert vm.states()["startup"] == "running"
    assert vm.told["step"] == "command"
