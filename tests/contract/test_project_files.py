"""The package carries its licence, CI runs what decides, and pins in several files agree."""

import email
import email.message
import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from provision.kinds.gke.kubernetes import manifests
from tests.kubernetes import programs

ROOT = Path(__file__).parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _pinned(name: str) -> dict[str, str]:
    """The packages of a lock -> their line."""
    lines = re.findall(r"^[a-z].*(?= )", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
    return {line.partition("==")[0]: line for line in lines}


@pytest.fixture
def metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> email.message.Message:
    """What the wheel says of itself."""
    backend = importlib.import_module(PROJECT["build-system"]["build-backend"])
    monkeypatch.chdir(ROOT)
    made = tmp_path / backend.prepare_metadata_for_build_wheel(str(tmp_path))
    return email.message_from_string((made / "METADATA").read_text())


def test_the_wheel_wants_what_is_pinned_and_tested(metadata: email.message.Message) -> None:
    wanted = {it.replace(";", " ;") for it in metadata.get_all("Requires-Dist", [])}
    pinned = _pinned("run.txt")
    assert wanted == set(pinned.values())
    named = PROJECT["dependency-groups"]["run"]
    direct = {re.split(r"[\[;]", name)[0].lower() for name in named}
    assert direct <= pinned.keys()
    assert PROJECT["build-system"]["requires"] == [_pinned("build.txt")["hatchling"]]


def test_the_package_names_its_licence_and_carries_the_text(
    metadata: email.message.Message,
) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert re.match(r"\s*Apache License\s+Version 2\.0,", (ROOT / "LICENSE").read_text())


def test_hosted_ci_checks_out_and_runs_what_decides_everywhere() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    checkout, run = job["steps"]

    # A tag can be moved to other code; a commit can not.
    assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", checkout["uses"])
    assert run == {"run": 'sudo env "PATH=$PATH" .ci/run'}
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
    assert workflow["permissions"] == {"contents": "read"}


def test_the_image_makes_the_manifests_that_the_program_pins() -> None:
    pins = dict(re.findall(r"^ARG (\w+)=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert pins["KUEUE_VERSION"] == manifests.KUEUE.version
    assert pins["JOBSET_VERSION"] == manifests.JOBSET.version
    assert pins["JOBSET_SHA256"] == manifests.JOBSET.sha256


def test_the_kueue_of_the_tests_is_an_earlier_patch_of_the_products_at_most() -> None:
    module = (programs.MODULES / "programs" / "go.mod").read_text()
    (built,) = re.findall(r"sigs\.k8s\.io/kueue v([\d.]+)", module)
    assert built == programs.KUEUE.version
    *minor, patch = map(int, manifests.KUEUE.version.split("."))
    *built_minor, built_patch = map(int, built.split("."))
    assert built_minor == minor
    assert built_patch <= patch
