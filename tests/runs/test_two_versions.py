"""Two colleagues with two versions of the program, and one cluster."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

import provision
from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse

ROOT = Path(provision.__file__).parents[1]
NEWER = "99.1.0"
CHANGED = "terraform/modules/startup/payload/lib/aiinfra_vm/report.py"


def _newer(rehearsal: Rehearsal, folder: Path) -> Rehearsal:
    """The program of a later version, whose VMs get another payload, against the same cloud."""
    for part in ("provision", "terraform", "rehearsal"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "entrypoint.py", folder)
    package, payload = folder / "provision/__init__.py", folder / CHANGED
    package.write_text(package.read_text().replace(provision.__version__, NEWER))
    payload.write_text(payload.read_text() + "\n# A later version says something else here.\n")
    program = f'shift 2; exec {sys.executable} {folder}/entrypoint.py "$@"'
    return dataclasses.replace(rehearsal, forked=False, machine=["sh", "-c", program, "sh"])


@pytest.mark.slow(
    sibling="tests/unit/state/test_record.py::test_a_record_of_a_newer_version_is_known_as_such"
)
def test_an_older_version_says_that_a_newer_one_was_here_and_asks_before_it_changes_anything(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    older = rehearse()
    newer = _newer(older, tmp_path / "newer")
    made = newer.run("Create")
    assert made.code == 0, made.said
    assert older.object("deployment.json")["tool_version"] == NEWER

    (note,) = [it for it in older.run("Status").document["notes"] if it["code"] == "newer-tool"]
    assert f"version {NEWER}" in note["what"]
    assert older.run("Plan").document["plan"]["newer_tool"] == NEWER
    before = older.resources()
    refused = older.run("Create")
    assert refused.code == 2, refused.said
    assert "change what a newer version has made" in refused.problem["what"]
    kept = older.object("deployment.json")
    assert kept["tool_version"] == NEWER
    assert {it for it in older.resources() if "template" in it} == {
        it for it in before if "template" in it
    }

    agreed = older.run("Create", "--yes")
    assert agreed.code == 0, agreed.said
    assert older.object("deployment.json")["tool_version"] == provision.__version__

    back = newer.run("Create")
    assert back.code == 0, back.said
    assert [it for it in back.document["notes"] if it["code"] == "newer-tool"] == []
    assert newer.run("Destroy").code == 0


@pytest.mark.parametrize(
    "kind",
    [
        "none",
        pytest.param(
            "gke",
            marks=pytest.mark.slow(
                sibling="::test_an_output_that_this_version_adds_is_no_change[none]"
            ),
        ),
    ],
)
def test_an_output_that_this_version_adds_is_no_change(standing: Rehearse, kind: str) -> None:
    rehearsal = standing({"ORCHESTRATOR_TYPE": kind})
    rehearsal.settings["ORCHESTRATOR_TYPE"] = kind
    made = state_file.outputs(rehearsal)["ids"]
    assert made["service_account"].startswith("projects/my-project/serviceAccounts/np-nodes@")
    state_file.write(rehearsal, state_file.resources(rehearsal), without="ids")

    planned = rehearsal.run("Plan", "--detailed-exitcode")
    assert planned.code == 0, planned.said
    assert "No changes: what exists is what the settings describe" in planned.said
    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert state_file.outputs(rehearsal)["ids"] == made
