"""The limits that both Python and Terraform know are the same, and fit into Google's."""

import ast
import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import hcl2

from provision.catalogue import limits
from tests.startup import sandbox

TERRAFORM = Path(__file__).parents[2] / "terraform"
STARTUP = TERRAFORM / "modules" / "startup"


def _rules(directory: str, variable: str) -> list[str]:
    """The conditions of a variable."""
    with (TERRAFORM / directory / "variables.tf").open() as file:
        blocks: list[dict[str, Any]] = hcl2.load(file)["variable"]
    (found,) = [
        about for block in blocks for name, about in block.items() if name.strip('"') == variable
    ]
    return [str(rule["condition"]) for rule in found["validation"]]


def _limits(rules: list[str], what: str) -> list[int]:
    """The numbers that conditions on something end with."""
    ends = [re.search(r"<= (\d+)\}$", rule) for rule in rules if what in rule]
    return [int(end[1]) for end in ends if end]


def test_a_startup_command_may_be_as_long_for_terraform_as_for_python() -> None:
    rules = _rules("modules/startup", "command")
    assert _limits(rules, "var.command") == [limits.COMMAND_BYTES]


def test_metadata_may_be_as_large_for_terraform_as_for_python() -> None:
    rules = _rules("modules/gpu-mig", "users_metadata")
    assert _limits(rules, "users_metadata") == [limits.USERS_METADATA_BYTES]


def test_a_key_of_metadata_may_be_as_long_for_terraform_as_for_python() -> None:
    (rule,) = _rules("mig", "metadata")
    assert f"{{1,{limits.METADATA_KEY}}}" in rule


def test_programs_of_vms_are_the_same_without_their_comments() -> None:
    for file in sandbox.PAYLOAD.glob("lib/**/*.py"):
        text = file.read_text("utf-8")
        assert _without_docstrings(sandbox.bare(text)) == _without_docstrings(text), file


def _without_docstrings(program: str) -> str:
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.dump(tree)


def test_programs_of_vms_join_dicts_as_pythons_older_than_3_9_can() -> None:
    for file in sandbox.PAYLOAD.glob("lib/**/*.py"):  # ruff knows a release's syntax alone
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(getattr(node, "op", None), ast.BitOr):
                for it in ast.iter_child_nodes(node):
                    made = ast.unparse(it).startswith(("dict(", "dict."))
                    assert not made, (file, ast.unparse(node))
                    assert not isinstance(it, (ast.Dict, ast.DictComp)), (file, ast.unparse(node))


def test_no_program_of_every_vm_imports_one_that_only_rays_or_slurms_have() -> None:
    for file in sandbox.PAYLOAD.glob("lib/**/*.py"):
        others = {"ray", "slurm"} - {file.stem.partition("_")[0]}
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aiinfra_vm"):
                words = [it.name for it in node.names] + [(node.module or "").rpartition(".")[2]]
                assert not others & {word.partition("_")[0] for word in words if "_" in word}, file


def test_the_users_shares_leave_room_for_the_tools_own_files() -> None:
    texts = (json.dumps(sandbox.payload(part)).encode() for part in ("ray", "slurm"))
    packed = max(len(base64.b64encode(gzip.compress(text))) for text in texts)
    # The configuration has mounts and names.
    own = packed + (STARTUP / "startup.sh").stat().st_size + 32 * 1024
    others = limits.USERS_METADATA_BYTES + limits.COMMAND_BYTES + limits.CERTIFICATES_BYTES
    assert own + others < limits.METADATA_BYTES
