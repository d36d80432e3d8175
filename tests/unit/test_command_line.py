"""Arguments, and what stands for them: no command line is too short or too odd to be answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from provision import cli
from tests.unit.test_any_env_list import handlers_put_back

if TYPE_CHECKING:
    from pathlib import Path

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


def _run(*argv: str, **environ: str) -> int:
    with handlers_put_back():
        return cli.main(argv, environ)


def test_an_action_is_missed_like_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--output=json", **MANDATORY) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "no action is given"
    assert "Create" in problem["fix"]
    assert _run("--output=json") == 2
    told = json.loads(capsys.readouterr().out)["problems"]
    assert {one["setting"] for one in told} == {"ACTION", *MANDATORY}


def test_without_arguments_the_action_is_the_environments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(ACTION="frobnicate", **MANDATORY) == 2
    told = capsys.readouterr().err
    assert "ACTION" in told
    assert "Create" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("argv", [[], ["--output"], ["--frobnicate"], ["a", "b"]])
def test_a_command_line_that_says_too_little_or_too_much_is_explained(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*argv) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("output", [["--output", "json"], ["--output=json"]])
def test_json_is_json_whatever_else_is_wrong(
    output: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("frobnicate", *output, "--nonsense") == 2
    assert json.loads(capsys.readouterr().out)["exit_code"] == 2


def test_the_flag_goes_before_the_environments_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("validate", "--offline", ACTION="Destroy", **MANDATORY) == 0
    assert "The settings are valid" in capsys.readouterr().out


def test_a_rehearsal_that_nobody_knows_is_refused_with_those_that_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("Plan", "--rehearse=tsunami", "--output=json", **MANDATORY) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "The scenario 'tsunami' can't be rehearsed"
    assert problem["why"].startswith("there is no scenario 'tsunami'")
    assert problem["fix"].startswith("use flaky: ")


def test_a_rehearsal_whose_cloud_does_not_start_says_where_its_log_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cloud.sqlite").write_text("this is no database")
    folder = {"AIINFRA_REHEARSAL_FOLDER": str(tmp_path)}
    assert _run("Plan", "--rehearse", "--output=json", **MANDATORY, **folder) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "The simulated cloud did not start"
    assert problem["why"] == f"its log, {tmp_path / 'cloud.log'}, tells why"
