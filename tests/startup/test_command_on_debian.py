"""The user's command under a real systemd, with a program that goes on where it stopped."""

import functools
import json
from pathlib import Path

import pytest

from tests.startup.debian_vm import DebianVM
from tests.startup.test_command import KEPT, LOG, QUICK
from tests.waiting import until

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

TRAIN = Path(__file__).with_name("saves_at_sigterm.py")
COMMAND = "python3 /srv/train.py --checkpoints /srv/checkpoints --steps 60000 2>&1 | tee /srv/said"


_wait = functools.partial(until, seconds=200)


def _checkpoint(vm: DebianVM) -> int:
    found = sorted((vm.disk / "srv/checkpoints").glob("checkpoint-*.json"))
    return int(json.loads(found[-1].read_text())["step"]) if found else 0


def _state(vm: DebianVM) -> tuple[str, int]:
    found = json.loads(vm.read(KEPT))
    return found["state"], found["attempt"]


def test_a_training_goes_on_after_a_shutdown_and_after_the_death_of_its_host(
    debian: DebianVM,
) -> None:
    debian.write("srv/train.py", TRAIN.read_text())
    debian.quicker = dict(QUICK)
    debian.configure(COMMAND, restart="on-failure")
    debian.boot()
    assert debian.states()["startup"] == "running", "the script waited for the command"
    _wait(lambda: _checkpoint(debian) >= 1000)

    debian.turn_off()

    stopped = _checkpoint(debian)
    assert stopped % 1000, "there was no checkpoint but the usual ones"
    assert f"stopped at step {stopped}" in debian.read(LOG)
    assert f"stopped at step {stopped}" in debian.read("srv/said"), "tee was ended before"
    assert _state(debian) == ("stopped", 1)
    assert debian.states()["command"] == "stopped"

    debian.boot()
    _wait(lambda: _checkpoint(debian) >= stopped + 1000)
    debian.kill()
    assert _state(debian) == ("running", 2)

    debian.boot()
    _wait(lambda: f"begins at step {_checkpoint(debian) // 1000 * 1000}" in debian.read(LOG))
    assert [line for line in debian.read(LOG).splitlines() if line.startswith("begins")][:2] == [
        "begins at step 0",
        f"begins at step {stopped}",
    ]


def test_systemd_begins_a_command_again_with_new_peers_and_without_the_old_processes(
    debian: DebianVM,
) -> None:
    debian.quicker = dict(QUICK)
    debian.configure(
        "echo ${NODES:-0} nodes, $(pgrep --full --count 'sleep 77[7]') left >>/srv/out;"
        " [[ $(wc -l </srv/out) -lt 4 ]] || exit 0;"
        " mkdir -p /etc/aiinfra; echo NODES=$(wc -l </srv/out) >/etc/aiinfra/nccl.env;"
        " setsid sleep 777 & kill -KILL $PPID; sleep 1; exit 1",
        restart="on-failure",
    )
    debian.boot()
    _wait(lambda: debian.exists(KEPT) and _state(debian)[0] == "done")

    assert debian.read("srv/out") == "".join(f"{nodes} nodes, 0 left\n" for nodes in range(4))
    assert _state(debian) == ("done", 4)
    _wait(lambda: debian.states()["startup"] == "done")
    # The command has said how it ended before systemd sees its process go.
    asked = "systemctl show --value --property SubState aiinfra-command.service"
    _wait(lambda: debian.run(asked).strip() == "exited")


def test_a_command_that_failed_for_good_is_begun_again_by_hand(debian: DebianVM) -> None:
    debian.configure("touch /srv/seen; [[ -e /srv/mended ]] || { echo no module; exit 3; }")
    debian.boot()
    _wait(lambda: debian.states()["startup"] == "failed")
    assert debian.detail("command").startswith("no module\nSTARTUP_COMMAND ended with exit code 3")
    assert "no module" in debian.run("journalctl --unit aiinfra-command --output cat --no-pager")

    debian.run("touch /srv/mended; systemctl restart aiinfra-command")

    _wait(lambda: debian.states()["startup"] == "done")
    assert _state(debian) == ("done", 2)
