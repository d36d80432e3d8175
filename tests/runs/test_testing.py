"""Test on VMs: what a person reads of good machines, and whom it names of bad ones."""

import re
from pathlib import Path

import pytest
from dotenv import dotenv_values

from rehearsal.inventory import stays
from tests.conftest import Golden
from tests.runs import rights
from tests.runs.conftest import Rehearsal, Rehearse

_NAME = re.compile(r"\b[a-z]+-vm-[a-z0-9]{4}\b")
EXAMPLES = Path(__file__).parents[2] / "examples"


SLOW = pytest.mark.slow(sibling="::test_an_examples_vms_are_tested_with_a_table_and_a_verdict")


def _settings(name: str) -> dict[str, str]:
    path = EXAMPLES / f"{name}.env.list"
    return {key: value for key, value in dotenv_values(path).items() if value}


@pytest.mark.parametrize(
    "name", ["a3-mega", pytest.param("a3-high", marks=SLOW), pytest.param("a3-ultra", marks=SLOW)]
)
def test_an_examples_vms_are_tested_with_a_table_and_a_verdict(
    rehearsal: Rehearsal, golden: Golden, goldens: Path, name: str
) -> None:
    rehearsal.settings = _settings(name)
    assert rehearsal.run("Create").code == 0
    tested = rehearsal.run("Test")
    assert tested.code == 0, tested.said
    golden.check(goldens / f"{name}.txt", _tables(tested.said))
    *vms, (group, measured) = tested.document["checks"].items()
    assert group == f"{rehearsal.settings['NAME_PREFIX']}-mig"
    assert [vm["faults"] for _, vm in vms] == [[], []]
    assert measured["least"] < measured["bandwidth"]
    assert not re.search(r"/vms/(task|results)", "\n".join(rehearsal.resources()))
    assert rehearsal.run("Destroy").code == 0
    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.parametrize(
    ("scenario", "code", "checked"),
    [
        # Three VMs: the pair without the slow one passes, and it fails with each of the others.
        ("slow-vm", 0, {"faulty": 1, "tries": 4}),
        # What a VM says of itself a Create hears, too.
        pytest.param(
            "bad-gpu",
            8,
            {"faulty": 0, "tries": 1},
            marks=pytest.mark.slow(
                sibling="tests/rehearsal/cloud/test_vm_agents.py::test_the_bad_gpu_is_one_of_one_vm"
            ),
        ),
    ],
)
def test_a_bad_vm_among_good_ones_is_named(  # noqa: PLR0913, PLR0917 - what it needs, and a row
    rehearse: Rehearse,
    golden: Golden,
    goldens: Path,
    scenario: str,
    code: int,
    checked: dict[str, int],
) -> None:
    rehearsal = rehearse(scenario=scenario)
    rehearsal.settings = {**_settings("a3-mega"), "INSTANCE_COUNT": "3"}
    assert rehearsal.run("Create").code == code
    tested = rehearsal.run("Test")
    assert tested.code == 8
    assert tested.problem["code"] == "test-failed"
    golden.check(goldens / f"{scenario}.txt", _tables(tested.said))
    found = tested.document["checks"]["mega-mig"]
    assert {"faulty": len(found["faulty"]), "tries": len(found["tries"])} == checked
    first = min(name for name in tested.document["checks"] if "-vm-" in name)
    assert f"--instances={first}" in tested.problem["fix"]


def _tables(said: str) -> str:
    """What a person reads from the table of the VMs on."""
    start = re.search(r"^VM +GPUs", said, re.MULTILINE)
    assert start is not None, said
    names: dict[str, str] = {}
    # In the order of their names, so that who is named is seen.
    for name in sorted(set(_NAME.findall(said))):
        names[name] = f"{name[:-4]}{len(names) + 1:04}"
    return _NAME.sub(lambda found: names[found.group()], said[start.start() :])
