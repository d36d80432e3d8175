"""The command's secrets: read at the start, in its environment, and nowhere else."""

from pathlib import Path

import pytest

from tests.startup.sandbox import VM

VERSION = "projects/my-project/secrets/hf-token/versions/latest"
KEY = "projects/other/secrets/key/versions/3"
SECRETS = [{"name": "HF_TOKEN", "resource": VERSION}, {"name": "KEY", "resource": KEY}]
VALUES = {VERSION: b"hf_of-the-vm", KEY: b"first line\nsecond line\n"}


def _given(vm: VM, command: str) -> None:
    vm.server.values["service-accounts/default/token"] = '{"access_token": "token-of-the-vm"}'
    vm.configure(command, secrets=SECRETS)
    vm.server.secrets = dict(VALUES)


def _on_disk(vm: VM, value: bytes) -> list[Path]:
    """The files of the VM that have a value, but for what the system and the test mount."""
    own = [vm.disk / name for name in ("etc", "home", "opt", "root", "run", "tmp", "var")]
    files = [file for folder in own for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if value in file.read_bytes()]


def test_the_command_has_its_secrets_and_nothing_else_has_them(vm: VM) -> None:
    _given(
        vm,
        '[ "${#HF_TOKEN}" = 12 ] && [ "${#KEY}" = 23 ] && [ -z "${PYTHONPATH-}" ]'
        ' && printf "it is ${HF_TOKEN:0:6}" && sleep 0 && echo "${HF_TOKEN:6}, $KEY" && exit 7',
    )

    booted = vm.boot()

    assert vm.states()["startup"] == "failed"
    assert "ended with exit code 7" in vm.detail("command")
    assert "it is ***, ***" in vm.detail("command")
    for value in (b"hf_of-the-vm", b"second line"):
        assert _on_disk(vm, value) == []
        assert value.decode() not in booted.stderr + booted.stdout + str(vm.server.written)
        assert value not in (vm.disk / "simulated/journal").read_bytes()


def test_a_role_that_is_not_known_everywhere_yet_is_waited_for(vm: VM) -> None:
    _given(vm, "echo ran >/out")
    vm.server.deny = 1

    assert vm.boot().returncode == 0, vm.detail("command")
    assert vm.read("out") == "ran\n"


def test_without_its_secrets_the_command_is_not_begun_but_at_a_later_boot(vm: VM) -> None:
    _given(vm, "echo ran >/out")
    del vm.server.secrets[KEY]

    vm.boot()
    assert vm.states()["startup"] == "failed"
    assert not vm.exists("out")
    assert f"the secret of KEY can't be read: {KEY}: 404, Secret not found" in vm.detail("command")
    assert "was not begun" in vm.detail("command")

    vm.server.secrets = dict(VALUES)
    vm.boot()
    assert vm.states()["startup"] == "done", vm.detail("command")
    assert vm.read("out") == "ran\n"


@pytest.mark.parametrize("code", ["exit 3", "kill -TERM $$"])
def test_the_command_ends_as_it_would_without_secrets(vm: VM, code: str) -> None:
    _given(vm, code)

    vm.boot()

    ended = {"exit 3": 3, "kill -TERM $$": 143}[code]
    assert f"STARTUP_COMMAND ended with exit code {ended}" in vm.detail("command")
    assert vm.told["steps"]["command"]["code"] == ended


def test_what_the_command_leaves_running_does_not_hold_up_the_start(vm: VM) -> None:
    vm.stubs["sleep"] += 'exec /usr/bin/sleep "$@"'
    _given(vm, "(sleep 40; echo hf_of-the-vm) & echo started")

    assert vm.boot().returncode == 0, vm.detail("command")
    assert vm.states()["command"] == "done"
