"""From a command line to an exit code: none is too short or too odd to be answered."""

import gc
import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests

from provision import __version__, cli
from provision.actions import status
from provision.context import Context
from provision.documents.status import About, Status, Trouble
from rehearsal import session
from tests.unit.conftest import MANDATORY


def _run(*argv: str, **environ: str) -> int:
    return cli.main(argv, environ)


def test_an_action_is_missed_like_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--output=json", **MANDATORY) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "no action is given"
    assert "Create" in problem["fix"]
    assert _run("--output=json") == 2
    told = json.loads(capsys.readouterr().out)["problems"]
    assert {one["setting"] for one in told} == {"ACTION", "--env-file"}


@pytest.mark.parametrize("lines", [None, "VM_TYPE=g2-standard-8\n"])
def test_who_has_no_env_list_is_told_so(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    lines: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    if lines:
        (tmp_path / "env.list").write_text(lines)
    assert _run("Validate", "--offline", "--output=json") == 2
    told = json.loads(capsys.readouterr().out)["problems"]
    assert ({one["setting"] for one in told} == {"--env-file"}) is (lines is None)
    if lines is None:
        # What the fix says is typed as it stands.
        writes, written, _ = re.split(r"( >env\.list)", told[0]["fix"])
        subprocess.run(["/bin/sh", "-c", f"{writes}{written}"], check=True)
        assert _run("Validate", "--offline") == 0
        (tmp_path / "env.list").unlink()
        (tmp_path / "terraform.tfvars").write_text('project_id = "a-project" # theirs\n')
        assert _run("Validate", "--offline") == 2
        assert "write PROJECT_ID=a-project to an env.list" in capsys.readouterr().err
    (tmp_path / "mine.list").write_text("")
    _run("Validate", "--env-file", "min.list", "--output=json")
    (told,) = json.loads(capsys.readouterr().out)["problems"]
    assert "'mine.list'" in told["fix"]


def test_without_arguments_the_action_is_the_environments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(ACTION="frobnicate", **MANDATORY) == 2
    told = capsys.readouterr().err
    assert "ACTION" in told
    assert "Create" in told
    assert "Traceback" not in told


def test_a_question_makes_the_clock_of_the_run_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clock"
    environ = session.environment("http://127.0.0.1:1", tmp_path, {})

    def perform(run: Context) -> bool:
        with run.console._asking():
            assert file.exists()
            assert run.clock.now() == run.clock.now()
        return False

    monkeypatch.setattr(cli, "_perform", perform)
    assert _run("Status", **MANDATORY, **environ) == 0


def test_a_command_line_that_says_too_little_or_too_much_is_explained_and_json_is_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for argv in ([], ["--output"], ["--frobnicate"], ["a", "b"]):
        assert _run(*argv) == 2
        assert "Traceback" not in capsys.readouterr().err
    for output in (["--output", "json"], ["--output=json"]):
        assert _run("frobnicate", *output, "--nonsense") == 2
        assert json.loads(capsys.readouterr().out)["exit_code"] == 2


@pytest.mark.parametrize(
    ("argv", "given", "code"),
    [
        (["Create", "--nonsense"], {}, 2),
        (["Create"], {"ENABLE_SPOT": "perhaps", "VM_TYPE": "token=hf_" + "a1" * 17}, 2),
        (["Validate", "--offline"], {"LABELS": "team=hf_" + "a1" * 17}, 0),
    ],
)
def test_events_are_one_a_line_and_the_last_one_is_the_document(
    argv: list[str], given: dict[str, str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*argv, "--output", "ndjson", **MANDATORY, **given) == code
    told = capsys.readouterr().out
    *before, result = [json.loads(line) for line in told.splitlines()]
    assert (result["event"], result["exit_code"]) == ("result", code)
    assert [event["problem"] for event in before] == result["problems"]
    assert bool(before) == bool(code)
    assert all(event["time"].endswith("Z") for event in [*before, result])
    assert "hf_" not in told
    assert _run(*argv, "--output", "json", **MANDATORY, **given) == code
    whole = json.loads(capsys.readouterr().out)
    assert result == {**whole, "event": "result", "time": result["time"]}


def test_the_flag_goes_before_the_environments_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("validate", "--offline", ACTION="Destroy", **MANDATORY) == 0
    assert "The settings are valid" in capsys.readouterr().out


def test_an_option_that_means_nothing_is_refused_wherever_the_action_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env_list = tmp_path / "env.list"
    env_list.write_text(
        "ACTION=status\nPROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n"
    )
    options = ["--output=json", "--copy", "/nonexistent"]
    ways = [
        _run(*options, "Status", **MANDATORY),
        _run(*options, ACTION="Status", **MANDATORY),
        _run(*options, "--env-file", str(env_list)),
    ]
    assert ways == [2, 2, 2]
    decoder, told, said = json.JSONDecoder(), capsys.readouterr().out, []
    while told.strip():
        document, end = decoder.raw_decode(told)
        said.append((document["action"], document["problems"]))
        told = told[end:].lstrip()
    assert said[0] == said[1] == said[2]
    action, (problem,) = said[0]
    assert action == "Status"
    assert problem["what"] == "Status does not support --copy"


@pytest.mark.parametrize(
    ("argv", "environ", "told"),
    [
        # Together with the problems of the settings.
        (["Delete"], {"ZONE": ""}, [("", "did you mean Destroy?"), ("ZONE", "ZONE=us-central1-a")]),
        # Not replaced by the environment's.
        (["Delete"], {"ACTION": "Create"}, [("", "did you mean Destroy?")]),
        # That of the environment has the other names, too.
        ([], {"ACTION": "Delete"}, [("ACTION", "ACTION=Destroy")]),
        # Help on it says so, and nothing of settings.
        (["--help", "Delete"], {"ZONE": ""}, [("", "did you mean Destroy?")]),
    ],
)
def test_a_wrong_action_is_told_with_what_may_be_meant(
    argv: list[str],
    environ: dict[str, str],
    told: list[tuple[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(*argv, "--output=json", **MANDATORY | environ) == 2
    document = json.loads(capsys.readouterr().out)
    assert not argv or document["action"] == ""
    assert [(one.get("setting", ""), one["fix"]) for one in document["problems"]] == told


@pytest.mark.parametrize("argv", [["Create"], []])
def test_an_env_file_that_is_missing_is_the_only_problem(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("--env-file", "/nonexistent", "--output=json", *argv) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["action"] == "".join(argv)
    (problem,) = document["problems"]
    assert "can't be read as an env file" in problem["what"]


def test_who_asks_for_help_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    image = "   or: docker run -it --env-file env.list IMAGE ACTION [OPTION]...\n"
    for line, shown in {
        "--help": f"usage: aiinfra ACTION [OPTION]...\n{image}",
        "-h --output=json": "usage: aiinfra ACTION",
        "--help create": "usage: aiinfra Create [OPTION]...",
        "Plan --help": "usage: aiinfra Plan [OPTION]...",
        "settings --help": "NAME=value lines",
        "--version": __version__,
        "--version --frobnicate": __version__,
    }.items():
        assert _run(*line.split(), ACTION="Destroy") == 0
        said = capsys.readouterr()
        assert said.out.startswith(shown)
        assert said.err == ""


def test_with_terraforms_exit_codes_a_mistake_is_not_taken_for_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for line, code in {
        "Plan --detailed-exitcode --nonsense": 1,
        "--detailed-exitcode --nonsense": 1,
        "Plan --nonsense": 2,
        "Status --detailed-exitcode --nonsense": 1,
        "Create --detailed-exitcode": 2,
    }.items():
        assert _run(*line.split(), "--output=json", **MANDATORY) == code
        assert json.loads(capsys.readouterr().out)["exit_code"] == code


BROKEN = Trouble(about=About.POOL, what="1 of 2 nodes of np-gpu exist")
SILENT = Trouble(about=About.KUBERNETES, what="it is not known what runs in the cluster")


@pytest.mark.parametrize(
    ("trouble", "code"), [((), 0), ((SILENT,), 1), ((BROKEN,), 2), ((BROKEN, SILENT), 2)]
)
def test_what_nobody_knows_is_neither_in_order_nor_broken(
    trouble: tuple[Trouble, ...], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Status(kind="gke", words="GKE cluster", name="np", trouble=trouble)
    location = SimpleNamespace(backend={})
    cloud = SimpleNamespace(folder=SimpleNamespace(location=location))
    monkeypatch.setattr(status, "connect", lambda _: cloud)
    monkeypatch.setattr(status, "_look", lambda *_: found)

    assert _run("Status", "--detailed-exitcode", **MANDATORY) == code
    assert _run("Status", **MANDATORY) == 0


def test_a_command_line_with_problems_starts_no_rehearsal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> None:
        pytest.fail("the rehearsal was started")

    monkeypatch.setattr(session, "run", run)
    assert _run("--rehearse", "Status", "--yes", **MANDATORY) == 2
    assert "Status does not support --yes" in capsys.readouterr().err


def test_a_rehearsal_gets_all_arguments_but_the_one_that_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[object, object]] = []
    monkeypatch.setattr(
        session, "run", lambda argv, _, scenario, __: started.append((list(argv), scenario))
    )
    for argv in (["--rehearse", "Create", "--yes"], ["Create", "--rehearse=slow", "--yes"]):
        _run(*argv)
    assert started == [(["Create", "--yes"], ""), (["Create", "--yes"], "slow")]


def test_a_rehearsal_gets_the_settings_as_they_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    env_list = tmp_path / "env.list"
    env_list.write_text('ZONE="us-central1-c"\nGKE_NODE_COUNT_PER_NODE_POOL=4\nNAME_PREFIX=other\n')
    given: list[object] = []
    monkeypatch.setattr(session, "run", lambda _, __, ___, settings: given.append(settings))
    _run("--rehearse", "Create", "--env-file", str(env_list), NAME_PREFIX="np", HOME="/root")
    assert given == [{"ZONE": "us-central1-c", "INSTANCE_COUNT": "4", "NAME_PREFIX": "np"}]
    own = ("--secret=A", "--secret=B=b:2", "--mount=my-data:/mnt/data:ro")
    _run("--rehearse", "Run", *own, "--", "true", PROJECT_ID="my-project")
    secrets = "A=projects/my-project/secrets/A,B=projects/my-project/secrets/b:2"
    named = {"SECRETS": secrets, "GCS_MOUNT_LIST": "my-data:/mnt/data"}
    assert given[1:] == [{"PROJECT_ID": "my-project", **named}]


def test_a_rehearsal_that_nobody_knows_is_refused_with_those_that_are_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("Plan", "--rehearse=tsunami", "--output=json", **MANDATORY) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "The scenario 'tsunami' can't be rehearsed"
    assert problem["why"].startswith("there is no scenario 'tsunami'")
    assert problem["fix"].startswith("use one of ")
    assert "flaky" in problem["fix"]
    assert len(problem["fix"]) < 1000


def test_a_rehearsal_whose_cloud_does_not_start_says_where_its_log_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cloud.sqlite").write_text("this is no database")
    folder = {"AIINFRA_REHEARSAL_FOLDER": str(tmp_path)}
    assert _run("Plan", "--rehearse", "--output=json", **MANDATORY, **folder) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["what"] == "The simulated cloud did not start"
    assert problem["why"] == f"its log, {tmp_path / 'cloud.log'}, tells why"


def test_a_password_in_netrc_does_not_take_the_place_of_the_access_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setattr("sys.argv", ["aiinfra", "--version"])
    before = gc.get_threshold()

    with pytest.raises(SystemExit):
        cli.entrypoint()

    gc.set_threshold(*before)
    gc.unfreeze()
    assert requests.utils.get_netrc_auth("https://compute.googleapis.com") is None


def test_the_env_list_of_the_folder_is_read_and_said_where_nothing_else_says_which_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.list").write_text("PROJECT_ID=from-file\nNAME_PREFIX=np\nZONE=us-central1-a\n")
    other = tmp_path / "b.list"
    other.write_text("PROJECT_ID=other-file\nNAME_PREFIX=np\nZONE=us-central1-a\n")
    offline = ("Validate", "--offline", "--output=json")

    for argv, environ, project in (
        ((), {}, "from-file"),
        (("--env-file", str(other)), {}, "other-file"),
        ((), {**MANDATORY}, "my-project"),
    ):
        assert _run(*offline, *argv, **environ) == 0
        told = capsys.readouterr()
        assert json.loads(told.out)["settings"]["PROJECT_ID"] == project
        assert ("Settings are from ./env.list" in told.err) is (project == "from-file")
