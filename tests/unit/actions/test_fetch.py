"""Fetch copies what a job wrote, and overwrites nothing to which nobody has agreed."""

import contextlib
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import fetch
from provision.codes import Code
from provision.deployment.kind import WayIn
from provision.documents.job import Job, JobState
from provision.errors import Declined, Problem, ProvisionError
from tests.unit.kinds.cases import problem_of, unheard

PROGRAM = "aiinfra-sh"  # stands in for gcloud: it runs the line here
Fetch = Callable[..., Any]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder of a job, on its machine."""
    made = tmp_path / "jobs" / "a 1"
    (made / "out" / "deep").mkdir(parents=True)
    (made / "train.py").write_text("print()")
    (made / "out" / "model.pt").write_bytes(bytes(3000))
    (made / "out" / "deep" / "-f").write_text("odd")
    (made / "out" / "away").symlink_to("/etc/passwd")
    return made


@pytest.fixture
def fetching(tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> Fetch:
    """Fetch of a job whose machine is this one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    # No sudo, whatever this machine has.
    for name, text in {PROGRAM: 'exec sh -c "$1"', "sudo": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    notes: list[Problem] = []
    said: list[str] = []

    def run(*others: str, answer: bool | None = None, agreed: bool = False, **way: Any) -> Any:
        usual = {"where": "vm-1", "folder": str(there), "tells": (PROGRAM,), "opens": ()}
        jobs = SimpleNamespace(way_in=lambda *_: WayIn(**{**usual, **way}))
        job = Job(name="a-1", state=JobState.SUCCEEDED, attempt=1, submitted="")
        monkeypatch.setattr("provision.actions.jobs.opened", lambda _: jobs)
        monkeypatch.setattr("provision.actions.jobs.meant", lambda *_: job)
        console = SimpleNamespace(
            is_terminal=answer is not None,
            ask=lambda _: answer,
            progress=said.append,
            result=lambda _: None,
        )
        context: Any = SimpleNamespace(
            job="a-1",
            others=others,
            agreed=agreed,
            settings=SimpleNamespace(fetch_rank=0, model_fields_set=set()),
            environ={"PATH": f"{programs}:/usr/bin:/bin"},
            console=console,
            progress=unheard(),
            note=notes.extend,
            notes=notes,
            said=said,
            report=SimpleNamespace(action="Fetch", fetched=None),
        )
        fetch.fetch(cast("Any", context))
        return context

    vars(run)["said"] = said
    return run


@pytest.mark.parametrize("path", ["", "out", "./out/", "ABSOLUTE/out"])
def test_a_path_is_the_same_below_the_destination(fetching: Fetch, there: Path, path: str) -> None:
    ran = fetching(path.replace("ABSOLUTE", str(there)))
    came = {str(it) for it in Path("a-1").rglob("*")}
    wanted = {"a-1/out", "a-1/out/model.pt", "a-1/out/deep", "a-1/out/deep/-f"}
    assert came == wanted | (set() if path else {"a-1/train.py"})
    told = ran.report.fetched
    assert (told.files, told.left_out) == (2 if path else 3, ("out/away",))
    assert "out/away" in ran.notes[0].what
    assert [str(it) for it in Path().iterdir()] == ["a-1"]


def test_one_file_goes_where_it_is_wanted(fetching: Fetch) -> None:
    fetching("out/deep/-f", "new/place")
    assert Path("new/place/out/deep/-f").read_text() == "odd"


def test_nothing_that_differs_is_overwritten_unless_somebody_agrees(
    fetching: Fetch, there: Path
) -> None:
    fetching("out")
    (there / "out" / "model.pt").write_text("new")
    (there / "out" / "more.pt").write_text("more")
    mine = Path("a-1/out/model.pt")
    problem = problem_of(ProvisionError, fetching, "out")
    assert problem.code is Code.APPROVAL_NEEDED
    assert problem.what.endswith("overwrite 1 file in a-1: out/model.pt")
    with pytest.raises(Declined):
        fetching("out", answer=False)
    assert mine.stat().st_size == 3000
    assert not Path("a-1/out/more.pt").exists()
    kept = Path("a-1/out/deep/-f").stat().st_ino
    told = fetching("out", answer=True).report.fetched
    assert Path("a-1/out/deep/-f").stat().st_ino == kept
    assert (told.files, told.same, told.overwritten) == (2, 1, ("out/model.pt",))
    assert mine.read_text() == "new"
    mine.write_text("mine")
    fetching("out", agreed=True)
    assert mine.read_text() == "new"
    assert [str(it) for it in Path().iterdir()] == ["a-1"]


def test_what_can_not_be_written_is_said(fetching: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "a-1/out/model.pt")

    monkeypatch.setattr("shutil.move", refuse)
    problem = problem_of(ProvisionError, fetching, "out")
    assert problem.what == "a-1/out/model.pt can't be written"
    assert problem.why.startswith("Permission denied; ")
    assert not list(Path().rglob(".aiinfra*"))


@pytest.mark.parametrize(
    ("folder", "file"), [("a-1/out/model.pt", ""), ("a-1", "out"), ("", "a-1")]
)
def test_a_folder_and_a_file_do_not_take_each_others_place(
    fetching: Fetch, folder: str, file: str
) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    if file:
        Path(folder, file).write_text("mine")
    assert (
        problem_of(ProvisionError, fetching, "out", agreed=True).code is Code.INVALID_COMMAND_LINE
    )
    assert Path(folder, file).exists()
    assert len(list(Path().rglob("*"))) == len(Path(folder, file).parts)


def test_of_a_folder_that_the_vm_removed_the_reason_is_told(fetching: Fetch, there: Path) -> None:
    there.rename(there.with_name("elsewhere"))
    there.with_name(f"{there.name}.gone").write_text("the VM removed it\n")
    problem = problem_of(ProvisionError, fetching)
    assert "it says so above" in problem.why
    assert "the VM removed it" in vars(fetching)["said"]


@pytest.mark.parametrize(
    ("path", "way", "code", "word"),
    [
        ("../b-1", {}, Code.INVALID_COMMAND_LINE, "is not in the folder"),
        ("/etc/passwd", {}, Code.INVALID_COMMAND_LINE, "is not in the folder"),
        ("logs", {}, Code.INVALID_COMMAND_LINE, "There is no logs"),
        ("", {"folder": "/nowhere"}, Code.MACHINES_GONE, "no folder of a-1"),
        ("", {"lost": "it is Ray's"}, Code.WITHOUT_EFFECT, "not where Fetch looks"),
        ("", {"tells": ("kubectl-that-is-not",)}, Code.INVALID_COMMAND_LINE, "wants kubectl"),
        ("", {"tells": ("false",)}, Code.UNREACHABLE, "Not all of it came"),
        ("", {"tells": ("true",)}, Code.UNREACHABLE, "Not all of it came"),
        # kubectl has ended well, and the stream too early.
        (
            *("", {"tells": ("sh", "-c", 'sh -c "$0" | head -c 4096')}),
            *(Code.UNREACHABLE, "Not all of it came"),
        ),
        # All came, and what sent it failed.
        (
            *("", {"tells": ("sh", "-c", 'sh -c "$0"; exit 255')}),
            *(Code.UNREACHABLE, "Not all of it came"),
        ),
    ],
)
def test_what_does_not_come_is_told_and_leaves_nothing(
    fetching: Fetch, path: str, way: dict[str, Any], code: Code, word: str
) -> None:
    problem = problem_of(ProvisionError, fetching, path, **way)
    assert (problem.code, word in problem.what) == (code, True), problem
    assert problem.fix
    assert not list(Path().iterdir())


def test_what_changed_meanwhile_is_copied_with_a_note(fetching: Fetch) -> None:
    ran = fetching("out", tells=("sh", "-c", 'sh -c "$0"; exit 1'))
    assert "while they were read" in ran.notes[0].what
    assert ran.report.fetched.files == 2


def test_what_the_sender_says_beside_is_passed_on(fetching: Fetch) -> None:
    says = 'echo "hello\x1b[2J" >&2; exec sh -c "$0"'
    assert "hello\x1b[2J" in fetching("out", tells=("sh", "-c", says)).said


def test_what_sends_has_what_its_way_wants(fetching: Fetch) -> None:
    check = f'test "$KUBECONFIG" = {shlex.quote(sys.prefix)} && exec sh -c "$0"'
    access = lambda: contextlib.nullcontext({"KUBECONFIG": sys.prefix})  # noqa: E731 - as a way has it
    assert fetching(tells=("sh", "-c", check), access=access).report.fetched.files == 3
