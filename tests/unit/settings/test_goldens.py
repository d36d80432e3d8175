"""Whole env files, and all that is said about them.

`case.env` is read as `--env-file` reads it; `docker-case.env` as `docker run --env-file` hands it
over, which takes every line as it stands. All settings stand in `mandatory-only.json`; the others
have those that differ from it.
"""

import json
from pathlib import Path

import pytest

from provision.codes import Code
from provision.errors import Problem
from provision.intake import load
from tests.conftest import Golden

SMALLEST = "mandatory-only"
CASES = Path(__file__).parents[2] / "golden" / "settings"


def as_docker_does(path: Path) -> dict[str, str]:
    """The variables that `docker run --env-file` makes of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.env")))
def test_an_env_file_is_judged_as_its_golden_says(case: str, golden: Golden) -> None:
    path = CASES / f"{case}.env"
    loaded = load(as_docker_does(path)) if case.startswith("docker-") else load({}, path)
    usual = {} if case == SMALLEST else load({}, CASES / f"{SMALLEST}.env").effective
    assert usual.keys() <= loaded.effective.keys()
    said = {
        "problems": [_words(problem) for problem in loaded.problems],
        "notes": [_words(note) for note in loaded.notes],
        "settings": {
            name: value
            for name, value in loaded.effective.items()
            if name not in usual or value != usual[name]
        },
    }

    golden.check(CASES / f"{case}.json", json.dumps(said, indent=2, ensure_ascii=False) + "\n")


def _words(problem: Problem) -> dict[str, str]:
    return {name: getattr(problem, name) for name in ("setting", "what", "why", "fix")}


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.env")))
def test_what_would_mend_a_setting_is_a_value_that_it_takes(case: str) -> None:
    loaded = load({}, CASES / f"{case}.env")
    for problem in (*loaded.problems, *loaded.notes):
        for name, value in problem.alternatives.settings.items():
            again = load({name: value})
            wrong = [it for it in again.problems if it.code is Code.INVALID_VALUE]
            assert wrong == [], f"{problem.what}: {name}={value}"


def test_a_value_that_would_mend_it_is_told_to_programs_too() -> None:
    (problem,) = [it for it in load({"NAME_PREFIX": "My_Cluster"}).problems if "My_" in it.what]
    assert problem.code is Code.INVALID_VALUE
    assert problem.alternatives.settings == {"NAME_PREFIX": "my-cluster"}


def test_there_are_cases() -> None:
    assert len(list(CASES.glob("*.env"))) >= 8
