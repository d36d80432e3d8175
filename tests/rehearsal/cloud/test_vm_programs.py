import io
import shlex
import tarfile

import pytest

from rehearsal.cloud import vm_programs

SCRIPT = """\
import sys, time
print("one")
print("half of", 1)
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
        (["python3", "s.py"], 0, 3, []),
        (["bash", "-c", "echo a b; sleep 5 && exit 3; echo c"], 5, 3, [(0, "a b")]),
        (["bash", "-c", """echo 'a; b && c' "d; \\"e"; exit 3"""], 0, 3, [(0, 'a; b && c d; "e')]),
        (["bash", "-c", "false && sleep 9; true || sleep 9; false || sleep 5"], 5, 0, []),
        (["bash", "-c", "sleep 2; false; exit $?"], 2, 1, []),
        (["sleep", "90"], 90, 0, []),
        (["false"], 0, 1, []),
        (["python3", "-c", "print('a'); raise SystemExit(4)"], 0, 4, [(0, "a")]),
    ],
)
def test_a_program_takes_its_time_and_says_its_words(
    command: list[str], seconds: float, code: int, said: list[tuple[float, str]]
) -> None:
    files = {"t.py": SCRIPT, "./t.py": SCRIPT, "s.py": "raise SystemExit(3)\n"}
    done = vm_programs.course(command, files, "job-1")
    assert (done.seconds, done.code, done.said, done.why) == (seconds, code, said, "")


def test_a_shell_knows_the_number_of_its_task() -> None:
    line = "echo seed $JOB_INDEX of ${JOB_INDEX}; test $JOB_INDEX != 3 || exit $JOB_INDEX"
    for index, code in ((2, 0), (3, 3)):
        command = vm_programs.of_task(["bash", "-c", line], index)
        done = vm_programs.course(command, {}, "job-1")
        assert (done.code, done.said) == (code, [(0, f"seed {index} of {index}")])


@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        (["torchrun", "--nnodes", "2", "train.py"], 60, []),
        (["python3", "says.py"], 0, ["done"]),
        (["python3", "asks.py"], 60, []),
        (["python3", "-m", "pip"], 60, []),
        (["python3", "/opt/somebodys.py"], 60, []),
        (["python3", "-c", "import train"], 60, []),
        (["bash", "-c", "echo a; python train.py"], 60, ["a"]),
        (["nvidia-smi"], 60, []),
    ],
)
def test_a_program_that_would_have_to_be_run_says_that_it_was_not(
    command: list[str], seconds: float, said: list[str]
) -> None:
    asks = "import sys\nif not sys.argv[1:]:\n    sys.exit(2)\n"
    files = {"train.py": "import torch\n", "says.py": "print('done')\n", "asks.py": asks}
    done = vm_programs.course(command, files, "job-1")

    first, *others = [line for _, line in done.said]
    assert first == f"This is a rehearsal: {shlex.join(command)} was not run here"
    assert (done.seconds, done.code, others) == (seconds, 0, said)
    assert done.why == "would run here: a rehearsal runs no program"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["torchrum", "t.py"], 127, "command not found"),
        (["python3", "other.py"], 2, "No such file or directory"),
        (["./t.py"], 126, "Permission denied"),
        (["bash", "-c", "echo 'a; echo b"], 2, "looking for matching quote"),
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
