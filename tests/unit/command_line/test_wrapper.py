"""The wrapper, run by real shells; an engine that writes down what it is told stands on PATH."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision import cli
from provision.command_line import usage
from tests.image.terminal import typed

_ENGINE = """#!{python}
import json, os, sys
if sys.argv[1:] == ["--version"]:
    print({version!r})
elif sys.argv[1] == "info":
    print({security!r})
else:
    open({told!r}, "w").write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]))
    sys.exit(75)
"""
ODD = ["Run", "--env", 'A=it\'s "one" $HOME `id` *', "--", "", "python", "a b.py", "--rehearse not"]


@pytest.fixture(params=["dash", "bash", "sh"])
def shell(request: pytest.FixtureRequest) -> str:
    found = shutil.which(str(request.param))
    if found is None:
        pytest.skip(f"{request.param} is not on this machine")
    return found


class Desk:
    """Somebody's machine: a folder with a space, a comma and a colon, and engines on PATH."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "my work, now: here"
        self.folder.mkdir()
        self.home = place / "home of me"
        (self.home / ".config" / "gcloud").mkdir(parents=True)
        self.bin = place / "bin"
        self.bin.mkdir()
        for program in ("uname", "id"):
            (self.bin / program).symlink_to(shutil.which(program) or program)
        self.told = place / "told.json"
        self.script = place / "aiinfra"
        self.script.write_text(usage.wrapper("registry.example.com/aiinfra@sha256:0a1b"))

    def engine(self, name: str, version: str = "Docker version 28.1", security: str = "[]") -> None:
        """Put an engine on PATH."""
        file = self.bin / name
        file.write_text(
            _ENGINE.format(
                python=sys.executable, version=version, security=security, told=str(self.told)
            )
        )
        file.chmod(0o755)

    def run(
        self, shell: str, *arguments: str, terminal: bool = False, **more: str
    ) -> tuple[int, list[str], str]:
        """Exit code, what the engine was told, and what the wrapper said."""
        command = [shell, str(self.script), *arguments]
        environ = {"PATH": str(self.bin), "HOME": str(self.home), **more}
        if terminal:
            code, said = typed(command, environ, folder=self.folder)
        else:
            how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
            done = subprocess.run(
                command, env=environ, cwd=self.folder, text=True, check=False, **how
            )
            code, said = done.returncode, done.stderr
        return code, json.loads(self.told.read_text()) if self.told.exists() else [], said


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def _values(told: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(told) if name == option]


def test_the_engine_gets_folder_login_user_and_arguments_as_they_are(
    desk: Desk, shell: str
) -> None:
    desk.engine("docker")

    code, told, said = desk.run(shell, *ODD)

    assert code == 75, said
    assert told[:3] == ["docker", "run", "--rm"]
    assert told[told.index("registry.example.com/aiinfra@sha256:0a1b") + 1 :] == ODD
    assert _values(told, "--mount") == [
        f'type=bind,"source={desk.home}/.config/gcloud","target=/root/.config/gcloud"',
        f'type=bind,"source={desk.folder}","target={desk.folder}"',
    ]
    assert _values(told, "--workdir") == [str(desk.folder)]
    assert _values(told, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    assert "--read-only" in told
    assert _values(told, "--cap-drop") == ["ALL"]
    assert _values(told, "--security-opt") == ["no-new-privileges", "label=disable"]
    assert "HTTPS_PROXY" in _values(told, "--env")
    assert not {"--tty", "--interactive"} & set(told)
    assert said == ""
    # A terminal is passed on where there is one.
    code, told, said = desk.run(shell, "Create", terminal=True)
    assert code == 75, said
    assert {"--tty", "--interactive"} <= set(told)


def test_settings_of_the_shell_stay_there_and_credentials_in_a_file_go_along(
    desk: Desk, shell: str
) -> None:
    desk.engine("docker")
    key = str(desk.home / "key, of mine.json")

    environ = {"PROJECT_ID": "another", "GOOGLE_APPLICATION_CREDENTIALS": key}
    environ |= {"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.secret", "AIINFRA_IMAGE": "mine:1"}

    _, told, _ = desk.run(shell, "Plan", terminal=False, **environ)

    assert told[-2:] == ["mine:1", "Plan"]
    assert f'type=bind,"source={key}","target=/credentials.json",readonly' in told
    assert "GOOGLE_APPLICATION_CREDENTIALS=/credentials.json" in _values(told, "--env")
    assert "ya29.secret" not in " ".join(told)
    assert "PROJECT_ID" not in _values(told, "--env")


def test_a_rehearsal_keeps_its_cloud_from_one_run_to_the_next(desk: Desk, shell: str) -> None:
    desk.engine("docker")

    for rehearsed, option in ((True, "--rehearse=stockout"), (False, "--full")):
        _, told, _ = desk.run(shell, "Create", option)
        assert ("aiinfra-rehearsal:/var/lib/aiinfra/rehearsal" in told) is rehearsed


@pytest.mark.parametrize(
    ("engine", "translates"),
    [
        (("podman", "podman version 5.4", ""), True),
        (("docker", "podman version 5.4", ""), True),
        (("docker", "Docker version 28.1", "[name=seccomp name=rootless]"), True),
        (("nerdctl", "nerdctl version 2.0", ""), False),
    ],
    ids=["podman", "podman as docker", "rootless docker", "another"],
)
def test_another_engine_is_found_and_users_are_translated_once(
    desk: Desk, shell: str, engine: tuple[str, str, str], *, translates: bool
) -> None:
    desk.engine(*engine)
    wanted = {"AIINFRA_ENGINE": "nerdctl"} if engine[0] == "nerdctl" else {}

    code, told, said = desk.run(shell, "Status", terminal=False, **wanted)

    assert (code, told[0]) == (75, engine[0]), said
    assert ("--user" in told) is not translates
    assert ("--cap-drop" in told) is not translates, "root that is you reads your files by them"


def test_what_is_missing_is_said(desk: Desk, shell: str) -> None:
    code, _, said = desk.run(shell, "Plan")
    assert code == 2
    assert said == "aiinfra: there is no docker or podman on PATH: install one of them\n"

    desk.engine("docker")
    desk.folder = Path("/usr")
    code, told, said = desk.run(shell, "Plan")
    assert (code, told) == (2, [])
    assert "folder of your own" in said


def test_the_image_alone_answers_with_the_wrapper(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["wrapper"], {"AIINFRA_IMAGE": "mine:1"}) == 0
    assert "image=${AIINFRA_IMAGE:-mine:1}\n" in capsys.readouterr().out
    assert cli.main(["wrapper"], {}) == 2
