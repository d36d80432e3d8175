"""Where the page of a run goes, and when there is one."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from provision.actions import report_page
from provision.console import Console
from provision.context import Context
from provision.documents.plan import Change
from provision.errors import CapacityError, Declined, SettingsError, StateError
from provision.intake import load
from provision.report import Report
from provision.time.clock import Clock
from tests import pages


class Folder:
    """A state folder that keeps what is written, or refuses."""

    location = SimpleNamespace(url="gs://loom/np-deployment")

    def __init__(self, *, refuses: bool = False) -> None:
        self.written: dict[str, str] = {}
        self._refuses = refuses

    def write(self, name: str, text: str, content_type: str) -> None:
        assert content_type.startswith("text/html")
        if self._refuses:
            raise StateError("the bucket is read-only")
        self.written[name] = text


def _context(file: Path | None, *, change: Change = Change.NEW, known: bool = True) -> Context:
    loaded = load({"ACTION": "Create"}, pages.EXAMPLES / "env.list")
    assert loaded.settings is not None
    report = Report(action="Create")
    if known:
        told = pages.contents("env.list", "Create")
        assert told.plan is not None
        report.topology, report.cost = told.topology, told.cost
        report.plan = dataclasses.replace(told.plan, change=change)
    return Context(
        settings=loaded.settings,
        environ={},
        clock=Clock.of({}),
        console=Console(),
        report=report,
        page=file,
    )


def _written(context: Context, folder: Any = None, error: Exception | None = None) -> None:
    with report_page.written(context) as found:
        found.folder = folder
        if error is not None:
            raise error


def test_a_page_is_written_here_and_kept_beside_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / "report.html", Folder()
    _written(_context(file), folder)
    said = " ".join(capsys.readouterr().err.split())
    assert said == f"The report is in {file} and beside the log"
    ((name, kept),) = folder.written.items()
    assert name.startswith("logs/")
    assert name.endswith("Z-create.html")
    assert kept == file.read_text()
    assert "Ready" in kept


def test_without_the_option_it_is_kept_and_said_where_if_something_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = Folder()
    _written(_context(None), folder)
    assert len(folder.written) == 1
    assert capsys.readouterr().err == ""

    failed = Folder()
    with pytest.raises(CapacityError):
        _written(_context(None), failed, CapacityError("us-central1-a has none"))
    (name,) = failed.written
    said = " ".join(capsys.readouterr().err.split())
    assert said == f"The report is in gs://loom/np-deployment/{name}"


def test_a_no_keeps_no_page_beside_the_state() -> None:
    folder = Folder()
    with pytest.raises(Declined):
        _written(_context(None), folder, Declined("Nothing was changed, as you said"))
    assert folder.written == {}


def test_a_run_that_fails_writes_it_too_and_one_that_had_nothing_to_do_if_asked(
    tmp_path: Path,
) -> None:
    file, folder = tmp_path / "report.html", Folder()
    error = CapacityError("us-central1-a has none")
    # Before anything is known there is none.
    with pytest.raises(CapacityError):
        _written(_context(file, known=False), Folder(), error)
    assert not file.exists()
    with pytest.raises(CapacityError):
        _written(_context(file, change=Change.NOTHING), folder, error)
    assert "us-central1-a has none" in file.read_text()
    assert list(folder.written.values()) == [file.read_text()]

    file, folder = tmp_path / "nothing.html", Folder()
    _written(_context(file, change=Change.NOTHING), folder)
    assert file.exists()
    assert folder.written == {}


def test_a_page_that_can_not_be_kept_does_not_fail_a_run_that_is_done(tmp_path: Path) -> None:
    context = _context(tmp_path / "report.html")
    _written(context, Folder(refuses=True))
    (note,) = context.report.notes
    assert (note.what, note.why) == ("the report could not be kept", "the bucket is read-only")


@pytest.mark.parametrize("name", ["", "missing/report.html"])
def test_a_file_that_can_not_be_written_is_refused_before_anything_is_done(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        _written(_context(tmp_path / name), Folder(), AssertionError("it went on"))
    (problem,) = refused.value.problems
    assert problem.what.startswith("--report ")
    assert problem.why
