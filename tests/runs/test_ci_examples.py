"""The recipes for CI: each fits its system's published schema, and its commands do what it says."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.inventory import stays
from tests.running import ran
from tests.runs.conftest import PROGRAM, Rehearsal, Rehearse

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
SCHEMAS = {
    "github-actions.yml": "vendor.github-workflows",
    "gitlab-ci.yml": "vendor.gitlab-ci",
    "cloudbuild.yaml": "vendor.cloudbuild",
}
NIGHT = {
    "github-night.yml": "vendor.github-workflows",
    "cloudbuild-night.yaml": "vendor.cloudbuild",
}
MOST_LINES = 32
NIGHTLY = {
    "VM_TYPE": "a3-ultragpu-8g",
    "ZONE": "us-central1-b",
    "INSTANCE_COUNT": "2",
    "NETWORK_CONFIG": "multi_nic_network",
    "ENABLE_FLEX_START": "yes",
    "MAX_RUN_DURATION": "3h",
    "CAPACITY_TIMEOUT": "2h",
}
"""As the page about nights has it."""
SLOW = pytest.mark.slow(sibling="::test_a_recipe_fits_the_published_schema_of_its_system")


def test_every_recipe_is_one_of_these_and_short() -> None:
    recipes = {path.name: path for path in FOLDER.glob("*.y*ml")}

    assert recipes.keys() == (SCHEMAS | NIGHT).keys()
    for name, path in recipes.items():
        assert len(path.read_text().splitlines()) <= MOST_LINES, name


@pytest.mark.parametrize("name", SCHEMAS | NIGHT)
def test_a_recipe_fits_the_published_schema_of_its_system(name: str) -> None:
    schema = (SCHEMAS | NIGHT)[name]
    done = ran(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, FOLDER / name]
    )

    assert done.returncode == 0, done.stdout


def _scripts(name: str) -> dict[str, str]:
    """What a recipe runs for each action, without what leads to the image."""
    recipe: Any = yaml.safe_load((FOLDER / name).read_text())
    if name == "cloudbuild.yaml":
        (step,) = recipe["steps"]
        assert (step["entrypoint"], step["args"][0]) == ("sh", "-euc")
        return {
            action: step["args"][1].replace("$_ACTION", action)
            for action in ("Plan", "Create", "Status")
        }
    if name == "gitlab-ci.yml":
        return {
            job.capitalize(): "\n".join(recipe[job]["script"])
            for job in ("plan", "create", "status")
        }
    by_event = {
        step["if"].rpartition("'")[0].rpartition("'")[2]: step["run"]
        for step in recipe["jobs"]["cluster"]["steps"]
        if "run" in step and "if" in step
    }
    return {
        "Plan": by_event["pull_request"],
        "Create": by_event["push"],
        "Status": by_event["schedule"],
    }


def _run(rehearsal: Rehearsal, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as CI does: in a checkout with an env.list, without a terminal."""
    checkout = rehearsal.folder / "checkout"
    programs = rehearsal.folder / "programs"
    for folder in (checkout, programs):
        folder.mkdir(exist_ok=True)
    settings = "".join(f"{name}={value}\n" for name, value in rehearsal.settings.items())
    (checkout / "env.list").write_text(settings)
    for place in (programs, checkout):
        (place / "aiinfra").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        (place / "aiinfra").chmod(0o755)
    path = f"{programs}{os.pathsep}{rehearsal.environ['PATH']}"
    return ran(
        ["bash", "-ec", script],
        cwd=checkout,
        env={**rehearsal.environ, "CI": "true", "PATH": path},
        stdin=subprocess.DEVNULL,
    )


@SLOW
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name.startswith("github") else [SLOW], id=name)
        for name in SCHEMAS
    ],
)
def test_a_recipe_plans_creates_and_looks(rehearsal: Rehearsal, name: str) -> None:
    scripts = _scripts(name)

    planned = _run(rehearsal, scripts["Plan"])
    assert planned.returncode == 0, planned.stderr
    assert "Plan: " in planned.stderr + planned.stdout
    assert rehearsal.resources() == []
    for action in ("Create", "Status"):
        done = _run(rehearsal, scripts[action])
        assert done.returncode == 0, done.stderr
    reports = {path.name for path in (rehearsal.folder / "checkout").glob("*.html")}
    assert reports == (set() if name == "cloudbuild.yaml" else {"plan.html", "create.html"})


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_nightly_look_alarms_where_something_is_broken(rehearse: Rehearse, name: str) -> None:
    rehearsal = rehearse()
    script = _scripts(name)["Status"]

    assert _run(rehearsal, script).returncode == 2, "there is no cluster"


@pytest.mark.parametrize(
    ("name", "scenario", "code", "words"),
    [
        pytest.param("github-night.yml", "", 0, "would run here", id="github"),
        pytest.param(
            "cloudbuild-night.yaml", "", 0, "would run here", id="cloud_build", marks=SLOW
        ),
        pytest.param(
            "github-night.yml", "never", 7, "Gave up: no machines", id="never", marks=SLOW
        ),
    ],
)
def test_a_night_leaves_nothing_with_machines_or_without(
    rehearse: Rehearse, name: str, scenario: str, code: int, words: str
) -> None:
    recipe: Any = yaml.safe_load((FOLDER / name).read_text())
    steps = recipe["steps"] if "steps" in recipe else recipe["jobs"]["night"]["steps"]
    script = steps[-1]["run"] if "run" in steps[-1] else steps[-1]["args"][-1]
    rehearsal = rehearse(scenario=scenario)
    rehearsal.settings |= NIGHTLY
    (rehearsal.folder / "checkout").mkdir()
    (rehearsal.folder / "checkout" / "train.py").write_text("import torch\n")
    done = _run(rehearsal, script)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
    assert all(map(stays, rehearsal.resources()))


def test_the_page_of_nights_has_these_settings() -> None:
    page = (FOLDER.parents[1] / "docs" / "how-to" / "nightly.md").read_text()
    assert {f"    {name}={value}" for name, value in NIGHTLY.items()} <= set(page.splitlines())


def test_no_recipe_has_what_an_auditor_of_workflows_finds() -> None:
    own = FOLDER.parents[1] / ".github" / "workflows"
    auditor = Path(sys.executable).with_name("zizmor")
    recipes = [FOLDER / "github-actions.yml", FOLDER / "github-night.yml"]
    done = ran([auditor, "--offline", *recipes, own])

    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout


@pytest.mark.parametrize("name", SCHEMAS)
def test_only_create_runs_as_the_account_that_may_change(name: str) -> None:
    text = (FOLDER / name).read_text()
    recipe: Any = yaml.safe_load(text)

    if name == "cloudbuild.yaml":
        assert "serviceAccount" not in recipe, "each trigger has its own"
    elif name == "gitlab-ci.yml":
        is_all = recipe["variables"]["GOOGLE_APPLICATION_CREDENTIALS"]
        own = {job: recipe[job].get("variables") for job in ("plan", "create", "status")}
        assert is_all == "looks.json"
        changes = {"GOOGLE_APPLICATION_CREDENTIALS": "changes.json"}
        assert own == {"plan": None, "create": changes, "status": None}
    else:
        assert "github.event_name == 'push' && vars.CHANGES_AS || vars.LOOKS_AS" in text
