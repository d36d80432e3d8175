"""What the rules of variables refuse and accept: the rows of each `tests/validations.tfvars`.

A row is a change of the variables that all tests of the module share, `tests/terraform.tfvars`, or
that are `given` in the table itself; the first variable of a row in `refuses` is what is refused.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import hcl2
import pytest

from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
MODULES = sorted(
    file.parent.relative_to(SOURCES).as_posix()
    for file in SOURCES.rglob("variables.tf")
    if "  validation {" in file.read_text(encoding="utf-8")
)


def _unquoted(value: Any) -> Any:
    """A value of the parser's, which keeps the quotes of texts and not those of expressions."""
    if isinstance(value, dict):
        return {_unquoted(key): _unquoted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unquoted(inner) for inner in value]
    return json.loads(value) if isinstance(value, str) and value.startswith('"') else value


def _rules(variables: Path) -> dict[int, str]:
    """The line of each rule -> the variable that it is about."""
    rules, variable = {}, ""
    for number, line in enumerate(variables.read_text(encoding="utf-8").splitlines(), 1):
        if named := re.match(r'variable "(\w+)"', line):
            variable = named[1]
        elif line == "  validation {":
            rules[number] = variable
    return rules


def _errors(terraform: Terraform, runs: dict[str, Any]) -> list[tuple[str, str]]:
    """Run and words of each error; each run is in a file of its own, as one that fails ends it."""
    for name, content in runs.items():
        file = terraform.folder / f"tests/{name}.tftest.json"
        file.write_text(json.dumps(content), encoding="utf-8")
    done = terraform.run(".", "test", "-json")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [it["test_summary"]["skipped"] for it in messages if it["type"] == "test_summary"] == [0]
    return [
        (message.get("@testrun", ""), message["diagnostic"]["detail"])
        for message in messages
        if message["@level"] == "error"
    ]


@pytest.mark.parametrize("module", MODULES)
def test_each_rule_refuses_what_it_should_and_nothing_else(
    terraform: Terraform, tmp_path: Path, module: str
) -> None:
    source = SOURCES / module
    text = (source / "tests/validations.tfvars").read_text(encoding="utf-8")
    table = _unquoted(hcl2.loads(text))
    refuses, accepts = table["refuses"], table.get("accepts", {})
    # A rule about variables needs no provider, and without one a run takes a tenth of the time.
    (tmp_path / "tests").mkdir()
    shutil.copy(source / "variables.tf", tmp_path)
    shutil.copy(source / "tests/terraform.tfvars", tmp_path / "tests")

    errors = _errors(
        replace(terraform, folder=tmp_path),
        {
            name: {
                "variables": table.get("given", {}),
                "run": {name: {"command": "plan", "variables": change}},
            }
            for name, change in {**refuses, **accepts}.items()
        },
    )

    rules = _rules(tmp_path / "variables.tf")
    lines = [int(re.findall(r"rule at variables\.tf:(\d+)", words)[0]) for _, words in errors]
    assert {(run, rules[line]) for (run, _), line in zip(errors, lines, strict=True)} == {
        (name, next(iter(change))) for name, change in refuses.items()
    }, errors
    assert set(rules) - set(lines) == set()
