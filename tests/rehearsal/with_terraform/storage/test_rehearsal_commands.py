"""The simulated cloud as processes: beside the program, and on its own."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from rehearsal import clock, session
from tests import waiting
from tests.running import ran
from tests.waiting import until

_ROOT = Path(__file__).parents[4]

# Starts the cloud as `session.run` does, then becomes a program that knows nothing of it.
_BECOME_SLEEP = """
import os, pathlib
from rehearsal import session
url, _ = session._start_cloud(pathlib.Path(os.environ["FOLDER"]), os.environ, "", {})
print(url, flush=True)
os.execvp("sleep", ["sleep", "60"])
"""
_ALONE = """
import runpy, sys
sys.path.insert(0, "")
sys.modules["provision"] = None  # an import of it fails
runpy.run_module("rehearsal", run_name="__main__")
"""

_REHEARSE = """
import os
from rehearsal import session
named = {"PROJECT_ID": "my-project", "ZONE": "us-central1-a", "GCS_MOUNT_LIST": "loom:/mnt"}
session.run(["--help"], os.environ, os.environ["SCENARIO"], named)
"""


def _environ(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(_ROOT),
        session.FOLDER_VARIABLE: str(folder / "rehearsal"),
        "FOLDER": str(folder),
    }


def _answers(base_url: str) -> bool:
    try:
        return requests.get(base_url, timeout=600).ok
    except requests.ConnectionError:
        return False


def _ends(base_url: str) -> None:
    until(lambda: not _answers(base_url), lambda: f"{base_url} still answers")


def _command(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, "-m", "rehearsal", *arguments], env=environ, timeout=waiting.SECONDS
    )


@contextlib.contextmanager
def _serving(
    environ: Mapping[str, str], *starting: str, **options: Any
) -> Iterator[dict[str, str]]:
    """A cloud in the foreground; gives the variables that it prints."""
    command = [sys.executable, *(starting or ("-m", "rehearsal")), "serve"]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, text=True, **options
    ) as server:
        assert server.stdout is not None
        variables = {}
        try:
            for line in server.stdout:
                if line.startswith("#"):
                    variables["page"] = line.split()[-1]
                    continue
                action, assignment = shlex.split(line)
                name, _, value = assignment.partition("=")
                variables[name] = value
                assert action in ("export", "unset")
                if name == "no_proxy":  # the last in their order
                    break
            yield variables
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=waiting.SECONDS) == 0


def test_the_cloud_outlives_an_exec_and_ends_with_the_process_even_if_that_is_killed(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", _BECOME_SLEEP]
    environ = _environ(tmp_path)
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        base_url = program.stdout.readline().strip()
        name = Path(f"/proc/{program.pid}/comm")
        until(lambda: name.read_text().strip() == "sleep")
        assert _answers(base_url)
        program.kill()
    _ends(base_url)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("", "It presumes what your settings name: the bucket gs://loom (--rehearse=missing"),
        ("missing", "It leaves out what your settings name: the bucket gs://loom."),
    ],
)
def test_a_rehearsal_says_that_it_is_one_and_what_it_presumes_and_runs_the_program(
    tmp_path: Path, scenario: str, said: str
) -> None:
    done = ran(
        [sys.executable, "-c", _REHEARSE],
        env=_environ(tmp_path) | {"SCENARIO": scenario},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    first, place, forget, second = done.stderr.splitlines()
    assert "Google Cloud is simulated" in first
    assert place.strip() == str(tmp_path / "rehearsal")
    assert "aiinfra-rehearsal forget" in forget
    assert second.startswith(said)
    assert "usage" in done.stdout.lower()


def test_a_cloud_is_served_shown_and_forgotten(tmp_path: Path) -> None:
    environ = _environ(tmp_path)
    with _serving(environ) as variables:
        made = requests.post(
            f"{variables['GOOGLE_STORAGE_CUSTOM_ENDPOINT']}b",
            params={"project": "my-project"},
            json={"name": "loom"},
            timeout=600,
        )
        assert made.ok
        assert " b/loom.\n" in _command(environ, "show").stdout
    shown = _command(environ, "show").stdout.splitlines()
    assert shown == ["The simulated cloud is empty, but for the bucket that keeps states: b/loom."]
    assert _command(environ, "forget").returncode == 0
    assert _command(environ, "show").stdout == "The simulated cloud is empty.\n"


def test_no_question_makes_time_stand_still_in_a_cloud_that_several_use(tmp_path: Path) -> None:
    with _serving(_environ(tmp_path)) as variables:
        file = Path(variables["CLOUD_CLOCK_FILE"])
        clock.stand(file)
        stood = clock.now(file)
        until(lambda: clock.now(file) > stood, file.read_text)
    stood = clock.now(file)
    assert clock.now(file) == stood


def test_it_runs_without_the_program_and_tells_a_browser_what_it_knows_and_refuses(
    tmp_path: Path,
) -> None:
    shutil.copytree(_ROOT / "rehearsal", tmp_path / "alone" / "rehearsal")
    with _serving(_environ(tmp_path), "-c", _ALONE, cwd=tmp_path / "alone") as variables:
        answer = requests.get(variables["page"], timeout=600)
    assert answer.headers["Content-Type"] == "text/html; charset=UTF-8"
    knows, _, rest = answer.text.partition("Google's alone")
    refuses, _, others = rest.partition("</details>")
    assert "<code>instanceGroupManagers.insert</code>" in knows
    assert "<code>vpnTunnels.insert</code>" in refuses
    for named in ("POST b", "projects.locations.clusters.create", "PodTemplate", "portal"):
        assert f"<code>{named}</code>" in others, named


def test_what_would_lead_away_is_unset_for_the_shell(tmp_path: Path) -> None:
    environ = _environ(tmp_path) | {"GOOGLE_APPLICATION_CREDENTIALS": "/real.json"}
    with _serving(environ) as variables:
        assert variables["GOOGLE_APPLICATION_CREDENTIALS"] == ""


@pytest.mark.parametrize("arguments", [("serve", "--scenario", "tsunami"), ("dance",), ()])
def test_a_command_that_makes_no_sense_is_a_usage_error(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert _command(_environ(tmp_path), *arguments).returncode == 2
