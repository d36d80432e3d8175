"""What the programs of jobs do on simulated VMs."""

from __future__ import annotations

import io
import tarfile

import pytest

from rehearsal.cloud import vm_programs

SCRIPT = """\
import sys, time
print("one")
time.sleep(30)
    print('two', flush=True)
sys.exit(7)
print("never")
"""


@pytest.mark.parametrize(
    ("command", "seconds", "code", "said"),
    [
        (["torchrun", "--nnodes", "2", "t.py"], 30, 7, [(0, "one"), (30, "two")]),
        (["./t.py"], 30, 7, [(0, "one"), (30, "two")]),
        (["python3", "./t.py"], 30, 7, [(0, "one"), (30, "two")]),
        (["python3", "/opt/somebodys.py"], 60, 0, []),
        (["python3", "-m", "pip"], 60, 0, []),
        (["python3", "s.py"], 0, 3, []),
        (["bash", "-c", "echo a b; sleep 5 && exit 3; echo c"], 5, 3, [(0, "a b")]),
        (["sleep", "90"], 90, 0, []),
        (["false"], 0, 1, []),
        (["nvidia-smi"], 60, 0, []),
    ],
)
def test_a_program_takes_its_time_and_says_its_words(
    command: list[str], seconds: float, code: int, said: list[tuple[float, str]]
) -> None:
    files = {"t.py": SCRIPT, "./t.py": SCRIPT, "s.py": "raise SystemExit(3)\n"}
    done = vm_programs.course(command, files, "job-1")
    assert (done.seconds, done.code, done.said) == (seconds, code, said)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["torchrum", "t.py"], 127, "command not found"),
        (["python3", "other.py"], 2, "No such file or directory"),
        (["./t.py"], 126, "Permission denied"),
    ],
)
def test_what_is_not_there_ends_at_once_in_the_words_of_who_looks_for_it(
    command: list[str], code: int, words: str
) -> None:
    done = vm_programs.course(command, {"t.py": SCRIPT}, "job-1")
    ((_, line),) = done.said
    assert (done.seconds, done.code) == (0, code)
    assert words in line


def test_programs_of_an_archive_are_known_by_their_permission() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, mode in (("a.sh", 0o755), ("b.sh", 0o644)):
            about = tarfile.TarInfo(name)
            about.mode = mode
            archive.addfile(about)
    assert set(vm_programs.files_of(packed.getvalue())) == {"a.sh", "./a.sh", "b.sh"}
