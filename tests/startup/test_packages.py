"""apt at first boot: who else is at it, what is left behind, and how long all of it may take."""

import re

import pytest

from tests.startup.sandbox import SCRIPT, VM
from tests.startup.test_boots import MOUNTS

LIST = "etc/apt/sources.list.d/aiinfra-gcsfuse.list"
TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")
RAY = {"version": "2.60.0"}

# What apt-get says while another one has the lists, with the seconds since the boot until then.
_LOCKED = """
read -r uptime _ </proc/uptime
if ((${uptime%%.*} < %d)); then
  echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (apt-get)" >&2
  echo "E: Unable to lock directory /var/lib/apt/lists/" >&2
  exit 100
fi
"""
_REAL_TIMEOUT = 'exec /usr/bin/timeout "$@"'
# A release for which there is no such suite: its lists can't be fetched, whoever asks for them.
_NO_SUITE = """
if [[ $* == *update* && -e /etc/apt/sources.list.d/aiinfra-gcsfuse.list ]]; then
  echo "E: The repository 'https://packages.cloud.google.com/apt gcsfuse-zesty Release'" \\
    "does not have a Release file." >&2
  exit 100
fi
"""


def test_locks_of_others_are_waited_for_as_long_as_the_step_may(vm: VM) -> None:
    vm.stubs["apt-get"] = _LOCKED % 400 + vm.stubs["apt-get"]
    vm.configure(mounts=MOUNTS[:1])

    assert vm.boot().returncode == 0, vm.detail("mounts")

    assert vm.states()["mounts"] == "done"


def test_a_lock_that_nobody_gives_back_is_named(vm: VM) -> None:
    vm.stubs["apt-get"] = _LOCKED % 4000
    vm.configure(mounts=MOUNTS[:1])

    assert vm.boot().returncode == 1

    assert "held by process 812 (apt-get)" in vm.detail("mounts")


def test_dpkgs_own_lock_is_waited_for_by_apt_itself(vm: VM) -> None:
    vm.configure(mounts=MOUNTS[1:])

    vm.boot()

    (waits,) = {
        int(seconds)
        for call in vm.calls("apt-get")
        for seconds in re.findall(r"DPkg::Lock::Timeout=(\d+)", call)
    }
    assert waits == 900 - 15


def test_a_source_that_the_release_does_not_have_is_named_and_taken_away(vm: VM) -> None:
    vm.stubs["apt-get"] = _NO_SUITE + vm.stubs["apt-get"]
    vm.configure(mounts=MOUNTS[:1])

    assert vm.boot().returncode == 1

    assert "gcsfuse-zesty Release' does not have a Release file" in vm.detail("mounts")
    assert "cannot be read, and was taken away again" in vm.detail("mounts")
    assert not vm.exists(LIST)
    updates = [call for call in vm.calls("apt-get") if " update " in call]
    assert len(updates) == 1, "what is not there does not come by waiting"


def test_no_source_of_ours_stays_also_of_an_earlier_version(vm: VM) -> None:
    (vm.disk / "etc/apt/sources.list.d/aiinfra-nvidia.list").touch()
    vm.configure(mounts=MOUNTS[:1])

    assert vm.boot().returncode == 0

    assert list((vm.disk / "etc/apt/sources.list.d").iterdir()) == []
    assert vm.calls("apt-get --quiet --yes") != []


def test_a_step_that_is_ended_leaves_no_source(vm: VM) -> None:
    # timeout(1) is real; here every limit is a second.
    vm.stubs["timeout"] = (
        'if [[ $1 == --kill-after=30 && $2 != 0 ]]; then shift 2; set -- 2 "$@"; fi\n'
        'exec /usr/bin/timeout "$@"'
    )
    vm.stubs["apt-get"] = "exec /usr/bin/sleep 60"
    vm.configure(mounts=MOUNTS[:1])

    vm.boot()

    assert "it took too long" in vm.detail("mounts")
    assert not vm.exists(LIST)


@pytest.mark.parametrize("healthy", [True, False])
def test_updates_are_held_while_steps_run_and_no_longer(vm: VM, *, healthy: bool) -> None:
    if not healthy:
        vm.stubs["nvidia-smi"] = "exit 9"
    vm.stubs["timeout"] = _REAL_TIMEOUT
    vm.stubs["systemctl"] = "[[ $1 != is-active || $3 != apt-daily-upgrade.timer ]]"
    vm.configure("true")

    assert vm.boot().returncode == (0 if healthy else 1)

    calls = vm.calls()
    mask = calls.index("systemctl mask --runtime apt-daily.service apt-daily-upgrade.service")
    unmask = calls.index("systemctl unmask --runtime apt-daily.service apt-daily-upgrade.service")
    steps = [number for number, call in enumerate(calls) if call.startswith("timeout")]
    assert mask < min(steps)
    assert max(steps) < unmask
    # The other one was not active, as somebody has switched it off.
    assert [call for call in calls if "stop" in call] == ["systemctl stop apt-daily.timer"]
    assert calls[-1] == "systemctl start apt-daily.timer"


def test_steps_together_have_a_limit_that_leaves_the_last_ones_less(vm: VM) -> None:
    vm.stubs["timeout"] = _REAL_TIMEOUT
    whole = int(re.findall(r"START_UP=(\d+)", SCRIPT.read_text())[0])
    vm.stubs["nvidia-smi"] = (
        f'echo "{whole - 100}.00 0.00" >/proc/uptime\n' + vm.stubs["nvidia-smi"]
    )
    vm.configure("echo ran >/out", ray=RAY)

    vm.boot()

    limits = {
        call.split()[-2]: int(call.split()[2])
        for call in vm.calls("timeout --kill-after=30")
        if " step " in call
    }
    assert limits["ray"] == 40 + 100
    assert limits["command"] == 0
    assert limits["gpu"] > limits["ray"]
