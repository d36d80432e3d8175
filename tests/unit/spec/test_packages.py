"""A job's packages are installed once for their content, and seen by whatever Python runs it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from provision.spec import packages

# Nothing of an index: a module that lies in the folder.
INSTALL = "cp own.py \"$(python -c 'import site; print(site.getsitepackages()[0])')\""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine whose Python has programs of its own, such as torchrun."""
    made = tmp_path_factory.mktemp("machine")
    python = Path(sys.base_prefix) / "bin/python3"
    (made / "python3").symlink_to(python)
    (made / "torchrun").write_text(f"#!{python}\nimport own\nprint('met', own.VALUE)\n")
    (made / "torchrun").chmod(0o755)
    return made


def _run(
    machine: Path, folder: Path, command: list[str], setup: str
) -> subprocess.CompletedProcess[str]:
    (folder / "own.py").write_text("VALUE = 7\n")
    environ = {"PATH": f"{machine}:{os.environ['PATH']}", "HOME": str(machine)}
    return subprocess.run(
        packages.wrapped(command, setup),
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_packages_are_installed_once_and_whatever_runs_the_program_finds_them(
    machine: Path, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("own\n")
    first = _run(machine, tmp_path, ["torchrun"], INSTALL)
    assert first.returncode == 0, first.stderr
    assert "packages are installed" in first.stdout
    assert first.stdout.endswith("met 7\n")
    # The program is the process, and no shell reads its words.
    code = "import os, sys, own; print(os.getppid(), sys.argv[1:]); sys.exit(5)"
    again = _run(machine, tmp_path, ["python", "-c", code, "$HOME; a b"], INSTALL)
    pip = _run(machine, tmp_path, ["sh", "-c", "command -v pip"], INSTALL)
    assert pip.stdout.startswith(f"{machine}/.aiinfra-packages/"), pip.stderr
    assert (again.returncode, again.stdout) == (5, f"{os.getpid()} ['$HOME; a b']\n")


def test_tasks_that_begin_at_once_on_one_machine_install_once(
    machine: Path, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("together\n")
    with ThreadPoolExecutor(3) as pool:
        install = f"sleep 0.3; {INSTALL}"
        tasks = list(pool.map(lambda _: _run(machine, tmp_path, ["torchrun"], install), range(3)))
    assert [it.returncode for it in tasks] == [0, 0, 0], [it.stderr for it in tasks]
    assert sorted("packages are installed" in it.stdout for it in tasks) == [False, False, True]
    assert all(it.stdout.endswith("met 7\n") for it in tasks)


@pytest.mark.slow(
    sibling="::test_packages_are_installed_once_and_whatever_runs_the_program_finds_them"
)
def test_what_can_not_be_installed_fails_the_job_and_is_tried_again(
    machine: Path, tmp_path: Path
) -> None:
    ended = _run(machine, tmp_path, ["torchrun"], "echo no such index; exit 3")
    assert ended.returncode == 3
    assert "no such index" in ended.stdout
    assert "could not be installed: exit code 3" in ended.stderr
    (tmp_path / "requirements.txt").write_text("another\n")
    assert "met 7" in _run(machine, tmp_path, ["torchrun"], INSTALL).stdout


def test_the_folder_says_what_is_installed_and_setup_says_it_before_it() -> None:
    assert "--requirement requirements.txt" in packages.wanted(None, {"requirements.txt": 1})
    assert "uv export --frozen" in packages.wanted(None, {"uv.lock", "pyproject.toml"})
    assert packages.wanted(None, {"uv.lock", "sub/requirements.txt"}) == ""
    assert packages.wanted("none", {"requirements.txt"}) == ""
    assert packages.wanted("make", {"requirements.txt"}) == "make"
    assert packages.wrapped(["a", "b"], "") == ("a", "b")
    assert packages.bare(packages.wrapped(["a", "b"], "x")) == ("a", "b")
    assert packages.bare(["a", "b"]) == ("a", "b")
