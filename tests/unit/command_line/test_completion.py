"""What shells complete. bash's script is run by bash; zsh's and fish's were, once, by hand."""

import subprocess
from pathlib import Path

import pytest

from provision import cli
from provision.command_line import Option, usage
from provision.settings.choices import Action

_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
complete -p aiinfra >/dev/null
_aiinfra
printf '%s\\n' "${COMPREPLY[@]}"
"""


def _completed(folder: Path, *words: str) -> list[str]:
    """What bash offers at the end of a command line, whose `=` it has taken apart."""
    script = folder / "aiinfra.bash"
    script.write_text(usage.script(["completion", "bash"], None) or "")
    done = subprocess.run(
        ["bash", "-u", "-c", _TAB, "bash", str(script), "aiinfra", *words],  # noqa: S607 - of PATH
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("Cr", ["Create"]),
        ("cr", ["create"]),
        ("--env-file x.list De", ["Destroy", "Debug"]),
        ("--o", ["--output"]),
        ("Create --re", ["--replace-vms", "--report", "--rehearse"]),
        ("plan --det", ["--detailed-exitcode"]),
        ("Destroy --report", []),
        ("Plan --output ", ["text", "json", "ndjson"]),
        ("Plan --output = nd", ["ndjson"]),
        ("Plan --output =", ["text", "json", "ndjson"]),
        ("--env-file ", []),
        ("Run --nodes ", []),
        ("Run -- --", []),
    ],
)
def test_bash_offers_what_fits(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert _completed(tmp_path, *line.split(" ")) == offered


def test_without_an_action_bash_offers_all_of_them(tmp_path: Path) -> None:
    assert set(Action) < set(_completed(tmp_path, ""))


@pytest.mark.parametrize("action", Action)
def test_bash_offers_the_options_of_an_action_and_no_others(tmp_path: Path, action: Action) -> None:
    own = {str(option) for option in Option if action in option.actions}
    assert set(_completed(tmp_path, action, "-")) == own


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_all_actions_and_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", shell], {}) == 0

    script = capsys.readouterr().out
    assert [it for it in Action if it not in script] == []
    assert [it for it in Option if f" {it[2:]} " not in script and it not in script] == []


def test_another_shell_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion"], {}) == 2

    assert "completion bash, zsh, fish or powershell" in capsys.readouterr().err
