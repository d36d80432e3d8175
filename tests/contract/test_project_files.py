"""The package carries its licence, CI runs what decides, and pins in several files agree."""

import email
import email.message
import importlib
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from provision.kinds.gke.kubernetes import manifests
from tests.kubernetes import programs
from tests.running import ran

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
    assert metadata.get_all("License-File") == ["LICENSE", "THIRD_PARTY.md"]
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


def test_a_release_takes_no_more_rights_than_each_job_needs_and_no_moving_code() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    writes = {
        (name, right) for name, of in rights.items() for right, how in of.items() if how == "write"
    }
    assert writes == {
        ("image", "packages"),
        ("package", "id-token"),
        ("package", "attestations"),
        ("name-image", "packages"),
        ("name-image", "id-token"),
        ("name-image", "attestations"),
        ("pypi", "id-token"),
        ("release", "contents"),
        ("pages", "pages"),
        ("pages", "id-token"),
    }
    # What may publish the site runs no code of the repository.
    assert [set(step) for step in workflow["jobs"]["pages"]["steps"]] == [{"uses"}]
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [it for it in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", it)] == []


@pytest.mark.parametrize(
    ("tag", "heading", "said"),
    [
        ("v1.2.3", "## 1.2.3, 2026-12-01", ""),
        ("v1.2.3", "## 1.2.3", ""),
        ("v1.2.4", "## 1.2.3, 2026-12-01", "tag v1.2.3, or raise it there"),
        ("v1.2.3", "## 1.2.3, not yet released", "write the date there"),
        ("v1.2.3", "## 1.2.30, 2026-12-01", "has no heading '## 1.2.3'"),
    ],
)
def test_a_release_is_of_the_version_whose_changes_are_told(
    tmp_path: Path, tag: str, heading: str, said: str
) -> None:
    for folder in (".ci", "provision"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci/release", tmp_path / ".ci")
    (tmp_path / "provision/__init__.py").write_text('__version__ = "1.2.3"\n')
    changes = f"# Changes\n\n{heading}\n\nNew: all.\n\n## 1.2.2, 2026-11-01\n\nOld.\n"
    (tmp_path / "CHANGELOG.md").write_text(changes)
    done = ran([tmp_path / ".ci/release", "notes", tag])
    assert done.returncode == (1 if said else 0), done.stderr
    assert said in done.stderr
    assert done.stdout == ("" if said else f"{heading}\n\nNew: all.\n")


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        ("github-workflows", "workflows/*.yml"),
        ("renovate", "renovate.json"),
    ],
)
def test_what_hosted_services_read_fits_their_schema(schema: str, pattern: str) -> None:
    files = sorted((ROOT / ".github").glob(pattern))
    assert files
    check = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = ran([sys.executable, *check, *files])
    assert done.returncode == 0, done.stdout


def test_what_renews_pins_sees_each() -> None:
    settings = json.loads((ROOT / ".github/renovate.json").read_text())
    (pattern,) = settings["customManagers"][0]["matchStrings"]
    found = re.findall(pattern.replace("?<", "?P<"), (ROOT / "Dockerfile").read_text())
    assert {name for _, name, _ in found} == {
        "GoogleCloudPlatform/cloud-sdk-docker",
        "kubernetes-sigs/kustomize",
        "kubernetes-sigs/kueue",
        "kubernetes-sigs/jobset",
    }
    patterns = [it.strip("/") for it in settings["pip_requirements"]["managerFilePatterns"]]
    locks = [*ROOT.glob("requirements/*.txt"), ROOT / "image/build-tools.txt"]
    for lock in locks:
        assert any(re.search(it, str(lock.relative_to(ROOT))) for it in patterns), lock


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
