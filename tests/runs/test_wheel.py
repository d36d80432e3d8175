"""The program as a wheel: installed elsewhere, it needs nothing of the tree it was made from."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests import output_schema
from tests.running import ran

ROOT = Path(__file__).parents[2]
LIES_ABOUT = (
    *("env.list", "secret.json", "rehearsal.html", "tests/unit/test_x.py", ".venv/bin/python"),
    *("terraform/mig/terraform.tfstate", "terraform/gke/own.auto.tfvars.json"),
    *("terraform/mig/.terraform/modules/x.tf", "terraform/mig/tests/x.tftest.hcl"),
    *("provision/__pycache__/cli.cpython-311.pyc", "rehearsal/.mypy_cache/x.json"),
    *("examples/ci/own.env.list", "requirements/own.txt"),
)
"""What a clone that is worked in may have, and no package."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}"]
    subprocess.run([*pip, *build, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    made = folder / "venv"
    venv.create(made)
    programs = made / "bin"
    elsewhere = [f"--python={programs / 'python'}", "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, *elsewhere, str(wheel)], check=True)
    (libraries,) = made.glob("lib/python*/site-packages")
    # The path alone: files of this environment that lead to the tree are not read from there.
    (libraries / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


def _run(programs: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: it for name, it in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"HOME": str(folder / "home"), "CLOUD_CLOCK_RATE": "0"}
    command = [str(programs / arguments[0]), *arguments[1:]]
    return ran(command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, timeout=600)


def _act(programs: Path, folder: Path, action: str, *more: str) -> dict[str, Any]:
    options = ["--rehearse=run-programs", "--output=json"]
    ended = _run(programs, folder, "aiinfra", action, *options, *more)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    document: dict[str, Any] = json.loads(ended.stdout)
    output_schema.require(document)
    assert document["action"] == action
    return document


@pytest.mark.slow(sibling="::test_an_installed_wheel_is_what_runs")
def test_an_installed_wheel_rehearses_a_cluster_with_a_job_to_its_last_bill(
    installed: Path, tmp_path: Path
) -> None:
    # With the env.list that its first answer tells a stranger to write, in an empty home.
    told = _run(installed, tmp_path, "aiinfra").stderr
    line = told.partition("fix: ")[2].partition("env.list writes one")[0]
    subprocess.run(["/bin/sh", "-c", f"{line}env.list"], cwd=tmp_path, check=True)
    (tmp_path / "train.py").write_text("open('loss', 'w').write('0.1')\nprint('is at work')\n")

    _act(installed, tmp_path, "Create", "--yes")
    shown = _run(installed, tmp_path, "aiinfra-rehearsal", "show").stdout
    assert "instanceGroupManagers" in shown
    (job,) = _act(installed, tmp_path, "Run", "--", "python3", "train.py")["jobs"]
    assert (job["name"], job["state"]) == ("train-1", "succeeded")
    assert "is at work" in _run(installed, tmp_path, "aiinfra", "Logs", "--rehearse").stdout
    _act(installed, tmp_path, "Fetch", "train-1")
    assert (tmp_path / "train-1" / "loss").read_text() == "0.1"
    status = _act(installed, tmp_path, "Status")["status"]
    assert status["cost"]["now"]["per_hour"]
    gone = _run(installed, tmp_path, "aiinfra", "Destroy", "--rehearse", "--yes").stdout
    assert "It has cost at most $" in gone
    left = _run(installed, tmp_path, "aiinfra-rehearsal", "show").stdout
    assert "empty, but for the bucket" in left


def test_an_installed_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    told = "import provision, rehearsal; print(provision.__file__, rehearsal.__path__)"
    places = _run(installed, tmp_path, "python", "-c", told).stdout
    assert places.count(str(installed.parent)) == 2
    assert str(ROOT) not in places
    training = "from provision.kinds.gke.kubernetes import jobs; print(jobs.training())"
    told = _run(installed, tmp_path, "python", "-c", training).stdout
    assert told.strip() == (ROOT / "examples/recipes/fine-tune/train.py").read_text().strip()


def _built(tree: Path, folder: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", f"--directory={folder}", *targets]
    done = ran(command, cwd=tree)
    assert done.returncode == 0, done.stderr


def _wheel(folder: Path) -> set[str]:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as made:
        return set(made.namelist())


def test_packages_have_what_a_run_needs_and_nothing_that_lies_about(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("provision", "rehearsal", "terraform", "requirements", "examples"):
        ignored = shutil.ignore_patterns("__pycache__", ".terraform")
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in (".gitignore", "pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY.md"):
        shutil.copy(ROOT / name, tree)
    for name in (*LIES_ABOUT, "manifests/kueue-v0.yaml"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("a secret of somebody's")

    _built(tree, tmp_path)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as made:
        made.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    _built(unpacked, tmp_path / "again", "--target", "wheel")

    holds = _wheel(tmp_path)
    carried = {it.removeprefix("provision/tree/") for it in holds}
    wanted = {"examples/env.list", "terraform/mig/.terraform.lock.hcl", "manifests/kueue-v0.yaml"}
    assert wanted <= carried
    assert {it.partition("/")[0] for it in holds if ".dist-info/" not in it} == {
        "provision",
        "rehearsal",
    }
    assert holds == _wheel(tmp_path / "again")
    unpacked_files = {str(it.relative_to(unpacked)) for it in unpacked.rglob("*")}
    assert set(LIES_ABOUT) & (carried | unpacked_files) == set()
    assert not [it for it in carried | unpacked_files if "tests" in it.split("/")]


def test_on_windows_one_line_says_where_it_runs() -> None:
    told = "import sys; sys.platform = 'win32'; import provision.cli"
    done = ran([sys.executable, "-c", told], cwd=ROOT)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "WSL 2" in done.stderr


def test_an_editable_install_is_a_path_and_nothing_that_runs_at_a_start(tmp_path: Path) -> None:
    build = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as made:
        (path,) = (name for name in made.namelist() if ".dist-info/" not in name)
        assert path.endswith(".pth")
        assert made.read(path).decode().splitlines() == [str(ROOT)]
