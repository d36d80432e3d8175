"""A kind of cluster is one module and a row of the registry: nothing else asks which it is."""

import json
from typing import Any

import pytest

from provision import cli
from provision.kinds import registry
from provision.settings.choices import Orchestrator
from tests.runs.conftest import Rehearsal
from tests.runs.toy_kind import Toy

SETTINGS = {"ORCHESTRATOR_TYPE": "ray", "IMAGE_FAMILY_NAME": "common-cu129-ubuntu-2404-nvidia-580"}


def test_a_kind_that_nobody_knows_is_made_planned_looked_at_tested_and_removed(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = Toy()
    monkeypatch.setitem(registry.KINDS, Orchestrator.RAY, toy)
    environ = rehearsal.environ | rehearsal.settings | SETTINGS

    def run(action: str) -> dict[str, Any]:
        code = cli.main([action, "--output=json"], environ)
        out, err = capsys.readouterr()
        assert code == 0, err
        document: dict[str, Any] = json.loads(out)
        return document

    made = run("Create")
    assert made["connection"]["vms"] == []
    assert toy.diary == ["resolve", "prepare", "capacity", "finish"]

    assert run("Plan")["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert toy.diary[4:] == ["resolve again", "prepare a plan"]

    status = run("Status")["status"]
    assert (status["kind"], status["toys"]) == ("toy", "np")
    assert status["links"]["Toys"].endswith("/toys/np?project=my-project")

    run("Test")

    assert run("Destroy")["changes"]["destroy"] > 0
    assert toy.diary[6:] == ["release toy", "sweep, last: True"]
    assert all("bucket" in line or "object" in line for line in rehearsal.resources())
