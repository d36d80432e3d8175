"""What the page for approvers claims is proven by tests that exist; no claim grows without one."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests import layers

PAGE: Final = layers.TREE / "docs/explanation/for-the-approver.md"
SECURITY: Final = layers.TREE / "SECURITY.md"
TABLE: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("approver_claims.toml").read_text(encoding="utf-8")
)
_ROLE: Final = re.compile(r"roles/([\w.]+)")
PROOFS: Final = TABLE["claims"] | TABLE["security"]


def blocks(text: str) -> Iterator[str]:
    """The paragraphs, bullets and rows of tables, without headings, heads and commands."""
    found: list[str] = []
    lines = [*text.splitlines(), ""]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        is_row, is_head = line.startswith("|"), bool(re.fullmatch(r"[|\s:-]+", following))
        begins = not line.strip() or line.startswith(("|", "* ", "#", "    "))
        if begins and found:
            yield " ".join(found)
            found = []
        if is_row and not is_head and not re.fullmatch(r"[|\s:-]+", line):
            yield line
        elif not is_row and line.strip() and not line.startswith(("#", "    ")):
            found.append(line.strip())


def proven(test: str) -> str:
    """Why a test proves nothing; "" if it does."""
    place, _, name = test.partition("::")
    path = layers.TREE / place
    if not path.is_file():
        return f"there is no {place}"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".hcl":
        return "" if f'run "{name}"' in text else f"{place} has no run {name}"
    functions = [it for it in ast.parse(text).body if isinstance(it, ast.FunctionDef)]
    function = next((it for it in functions if it.name == name), None)
    return "" if function is not None else f"{place} has no {name}"


def is_slow(test: str) -> bool:
    """Whether a test is left to `make test-all` whole."""
    place, _, name = test.partition("::")
    if place.endswith(".hcl"):
        return False
    body = ast.parse((layers.TREE / place).read_text(encoding="utf-8")).body
    function = next(it for it in body if isinstance(it, ast.FunctionDef) and it.name == name)
    return any("slow" in ast.unparse(it).lower() for it in function.decorator_list)


@pytest.mark.parametrize("claim", PROOFS)
def test_a_claim_has_tests_that_exist_and_one_that_each_change_passes(claim: str) -> None:
    tests = PROOFS[claim]
    assert [why for it in tests if (why := proven(it))] == []
    assert tests
    assert not all(map(is_slow, tests)), "one of them is in `make test`, or in a layer of its own"


def test_each_part_of_the_page_is_a_claim_with_its_tests_or_says_none() -> None:
    words = TABLE["claims"].keys() | TABLE["told"].keys()
    parts = list(blocks(PAGE.read_text(encoding="utf-8")))
    assert len(parts) > 80, "the page is read"
    assert [part for part in parts if not any(it in part for it in words)] == []


def test_no_claim_is_kept_that_the_pages_do_not_make() -> None:
    parts = list(blocks(PAGE.read_text(encoding="utf-8")))
    listed = list(blocks(SECURITY.read_text(encoding="utf-8")))
    words = TABLE["claims"].keys() | TABLE["told"].keys()
    assert [it for it in words if not any(it in part for part in parts)] == []
    assert [it for it in TABLE["security"] if not any(it in part for part in listed)] == []


def test_each_thing_that_must_not_happen_has_a_test_that_tries_it() -> None:
    bullets = [it for it in blocks(SECURITY.read_text(encoding="utf-8")) if it.startswith("* ")]
    assert len(bullets) == len(TABLE["security"])
    assert [it for it in bullets if not any(word in it for word in TABLE["security"])] == []


def test_accounts_have_in_the_project_the_roles_that_the_page_says() -> None:
    root, module = (
        (layers.TREE / "terraform" / it).read_text(encoding="utf-8")
        for it in ("gke/service_account.tf", "modules/service-account/variables.tf")
    )
    before, _, after = root.partition("_node_roles =")
    of_pods, more = (set(_ROLE.findall(it)) for it in (before, after.partition("}")[0]))
    of_vms = set(_ROLE.findall(module))
    rows = {
        it.split("|")[1].strip(): it
        for it in blocks(PAGE.read_text(encoding="utf-8"))
        if it.startswith("| `<NAME_PREFIX>-")
    }
    said = {
        who: set(re.findall(r"`([\w.]+\.[\w.]+)`", row.rpartition("in the project:")[2]))
        for who, row in rows.items()
    }
    assert said["`<NAME_PREFIX>-nodes`, VMs"] == of_vms
    assert said["`<NAME_PREFIX>-nodes`, GKE"] == of_pods | more
    # "the same but for the last"
    assert rows["`<NAME_PREFIX>-workload`, GKE"].endswith("| the same but for the last |")
    assert more == {"autoscaling.metricsWriter"}
    assert rows["`<NAME_PREFIX>-nodes`, GKE"].rstrip("| ").endswith("`autoscaling.metricsWriter`")


def test_a_proof_that_is_none_is_named() -> None:
    own = "tests/contract/test_approvers_page.py"
    assert proven(f"{own}::test_a_proof_that_is_none_is_named") == ""
    assert proven(f"{own}::test_nothing") == f"{own} has no test_nothing"
    assert proven("tests/none.py::test_x") == "there is no tests/none.py"
    assert is_slow("tests/runs/test_grants.py::test_a_destroy_leaves_the_grants_of_others")
