"""When VMs are idle: by what they do themselves, and by what the others say."""

import subprocess
from typing import Any

import pytest
from aiinfra_vm import idle, storage
from hypothesis import given
from hypothesis import strategies as st

TIMEOUT = 600.0


class Folder:
    """The folder that all share: each write is a new generation."""

    def __init__(self) -> None:
        self.generation = 0
        self.written: list[str] = []

    def write(self, name: str, _document: Any) -> None:
        self.written.append(name)
        self.generation += name == idle.ACTIVE

    def read(self, _name: str, unless: int = 0) -> Any:
        if self.generation == unless:
            raise storage.Unchanged
        return b"{}", storage.Version(idle.ACTIVE, self.generation, 1)


class Vms:
    """Two VMs, a clock, and what each does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.folder = Folder()
        self.does = ["", ""]
        self.ended: list[tuple[int, float]] = []
        self.idle = [
            idle.Idle(
                self.folder,  # type: ignore[arg-type]  # what of it is used
                f"vm-{number}",
                TIMEOUT,
                lambda number=number: self.does[number],  # type: ignore[misc]  # the same type
                lambda number=number: self.ended.append((number, self.now)),  # type: ignore[misc]
                lambda: self.now,
            )
            for number in (0, 1)
        ]

    def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            self.now += 60
            for number, one in enumerate(self.idle):
                if number not in dict(self.ended):
                    one.look(has_job=False)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 12)), max_size=6))
def test_no_vm_ends_within_the_timeout_after_work_of_any_and_all_do_after_it(
    works: list[tuple[int, int]],
) -> None:
    vms = Vms()
    last = 0.0
    for number, minutes in works:
        vms.does[number] = "a GPU works"
        vms.pass_minutes(minutes)
        vms.does[number] = ""
        last = vms.now
        assert not vms.ended
        vms.pass_minutes(7)
    vms.pass_minutes(13)
    assert {number for number, _ in vms.ended} == {0, 1}
    assert all(TIMEOUT <= at - last <= TIMEOUT + 180 for _, at in vms.ended)
    assert idle.ENDED in vms.folder.written


def test_a_job_counts_as_work_and_an_answer_that_does_not_come_ends_nothing() -> None:
    vms = Vms()
    one = vms.idle[0]
    for _ in range(30):
        vms.now += 60
        one.look(has_job=True)
    assert not vms.ended
    vms.now += 2 * TIMEOUT

    def away(*_: object, **__: object) -> None:
        raise OSError("away")

    vms.folder.read = away  # type: ignore[method-assign]  # Cloud Storage is away
    with pytest.raises(OSError, match="away"):
        one.look(has_job=False)
    assert not vms.ended


SESSION = "3 1001 ann - 812 user pts/0 no -\n4 1001 ann - 813 manager - no -"


@pytest.mark.parametrize(
    ("unit", "sessions", "gpus", "what"),
    [
        ("dead", "", "0\n0", ""),
        ("exited", "4 1001 ann - 813 manager - no -", "0\n0", ""),
        ("running", "", "0\n0", "STARTUP_COMMAND runs"),
        ("dead", SESSION, "0\n0", "somebody is logged in"),
        ("dead", "", "0\n3", "a GPU works"),
        ("dead", "", "0\n[N/A]", "a GPU works"),
        ("dead", "", OSError("no nvidia-smi"), "it can't be told: no nvidia-smi"),
        # Of a VM without GPUs the processors count.
        ("dead", "", 0.1, ""),
        ("dead", "", 1.5, "its processors work"),
    ],
)
def test_work_is_a_command_a_login_or_a_gpu_and_what_can_not_be_told(
    monkeypatch: pytest.MonkeyPatch, unit: str, sessions: str, gpus: Any, what: str
) -> None:
    answers: dict[str, Any] = {"systemctl": unit, "loginctl": sessions, "nvidia-smi": gpus}

    def run(command: list[str], _seconds: float) -> subprocess.CompletedProcess[bytes]:
        answer = answers[command[0]]
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, answer.encode())

    monkeypatch.setattr("aiinfra_vm.programs.ask", run)
    monkeypatch.setattr("os.getloadavg", lambda: (9.0, gpus, 9.0))
    assert idle.work(has_gpus=not isinstance(gpus, float)) == what
