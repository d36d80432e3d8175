"""The program as a wheel: installed elsewhere, it needs nothing of the tree it was made from."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests import output_schema
from tests.running import ran

ROOT = Path(__file__).parents[2]
SETTINGS = "PROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n"


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
    environ |= {"AIINFRA_REHEARSAL_FOLDER": str(folder / "cloud"), "CLOUD_CLOCK_RATE": "0"}
    command = [str(programs / arguments[0]), *arguments[1:]]
    return ran(command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, timeout=600)


def _act(programs: Path, folder: Path, action: str) -> None:
    options = ["--rehearse", "--env-file=env.list", "--output=json", "--yes"]
    ended = _run(programs, folder, "aiinfra", action, *options)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    document = json.loads(ended.stdout)
    output_schema.require(document)
    assert document["action"] == action


@pytest.mark.slow(sibling="::test_an_installed_wheel_is_what_runs")
def test_an_installed_wheel_rehearses_a_cluster(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "env.list").write_text(SETTINGS)
    _act(installed, tmp_path, "Create")
    shown = _run(installed, tmp_path, "python", "-m", "rehearsal", "show").stdout
    assert "instanceGroupManagers" in shown
    _act(installed, tmp_path, "Destroy")
    left = _run(installed, tmp_path, "python", "-m", "rehearsal", "show").stdout
    assert "empty, but for the bucket" in left


def test_an_installed_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    told = "import provision, rehearsal; print(provision.__file__, rehearsal.__path__)"
    places = _run(installed, tmp_path, "python", "-c", told).stdout
    assert places.count(str(installed.parent)) == 2
    assert str(ROOT) not in places
    training = "from provision.kinds.gke.kubernetes import jobs; print(jobs.training())"
    told = _run(installed, tmp_path, "python", "-c", training).stdout
    assert told.strip() == (ROOT / "examples/recipes/fine-tune/train.py").read_text().strip()


def test_an_editable_install_is_a_path_and_nothing_that_runs_at_a_start(tmp_path: Path) -> None:
    build = f"from hatchling.build import build_editable; build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as made:
        (path,) = (name for name in made.namelist() if ".dist-info/" not in name)
        assert path.endswith(".pth")
        assert made.read(path).decode().splitlines() == [str(ROOT)]
