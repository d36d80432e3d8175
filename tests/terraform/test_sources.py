"""What can be seen of `terraform/` by reading it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2
import pytest

from tests import terraform_tables
from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
DIRECTORIES = sorted(
    file.parent
    for file in SOURCES.rglob("versions.tf")
    if not {"tests", ".terraform"} & set(file.relative_to(SOURCES).parts)
)
FILES = sorted(file for directory in DIRECTORIES for file in directory.glob("*.tf"))

each_directory = pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
each_file = pytest.mark.parametrize(
    "file", FILES, ids=lambda path: path.relative_to(SOURCES).as_posix()
)


def _parse(file: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = hcl2.loads(file.read_text(encoding="utf-8"))
    return parsed


def _blocks(directory: Path, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The blocks with one label of a directory, in order of their files and lines."""
    for file in sorted(directory.glob("*.tf")):
        for block in _parse(file).get(kind, []):
            for name, body in block.items():
                yield name.strip('"'), body


def test_the_sources_are_formatted(terraform: Terraform) -> None:
    # Not the copy, in which other tests plant their errors.
    done = terraform.run(str(SOURCES), "fmt", "-check", "-recursive", "-no-color")

    assert (done.returncode, done.stdout) == (0, ""), "terraform fmt -recursive terraform"


def test_versions_are_the_same_everywhere() -> None:
    texts = {
        file.read_bytes() for file in SOURCES.rglob("versions.tf") if ".terraform" not in file.parts
    }

    assert len(texts) == 1


def test_each_root_locks_the_provider_to_what_its_registry_signed() -> None:
    (constraint,) = re.findall(r' version = "(.*)"', (SOURCES / "mig/versions.tf").read_text())
    locks = sorted(SOURCES.glob("*/.terraform.lock.hcl"))

    assert [lock.parent for lock in locks] == [
        directory for directory in DIRECTORIES if directory.parent == SOURCES
    ]
    for lock in locks:
        text = lock.read_text(encoding="utf-8")
        assert re.findall(r'^provider "(.*)"', text, re.MULTILINE) == [
            "registry.terraform.io/hashicorp/google"
        ]
        assert 'version     = "7.45.0"' in text
        assert f'constraints = "{constraint}"' in text
        # Checksums of zips only: one of an unpacked folder would refuse the stand-in.
        assert len(re.findall(r'"zh:[0-9a-f]{64}"', text)) == 12
        assert "h1:" not in text


@each_directory
def test_a_directory_has_its_readme_its_variables_and_its_tests(directory: Path) -> None:
    for wanted in ("README.md", "variables.tf", "outputs.tf", "tests"):
        assert (directory / wanted).exists()


@each_directory
def test_a_readme_has_the_variables_and_outputs_that_there_are(directory: Path) -> None:
    readme = directory / "README.md"

    assert readme in terraform_tables.readmes()
    assert readme.read_text(encoding="utf-8") == terraform_tables.renewed(readme), "make docs"


@each_file
def test_a_file_is_short(file: Path) -> None:
    # Declarations are read one by one; there may be more of them.
    limit = 300 if file.name == "variables.tf" else 200

    assert len(file.read_text(encoding="utf-8").splitlines()) <= limit


@each_directory
@pytest.mark.parametrize("kind", ["variable", "output"])
def test_variables_and_outputs_are_described_and_in_order(directory: Path, kind: str) -> None:
    blocks = list(_blocks(directory, kind))

    assert [name for name, _ in blocks] == sorted(name for name, _ in blocks)
    assert [name for name, body in blocks if not body.get("description")] == []


@each_directory
def test_a_variable_takes_null_only_where_that_means_none(directory: Path) -> None:
    takes = [
        name
        for name, body in _blocks(directory, "variable")
        if ("default" in body and body["default"] is None) != ("nullable" not in body)
    ]

    assert takes == []


@each_directory
def test_every_variable_is_used(directory: Path) -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8")
        for file in directory.glob("*.tf")
        if file.name != "variables.tf"
    )

    assert [
        name
        for name, _ in _blocks(directory, "variable")
        if not re.search(rf"\bvar\.{name}\b", text)
    ] == []


@each_file
def test_locals_are_private(file: Path) -> None:
    names = [name for block in _parse(file).get("locals", []) for name in block]

    assert [name for name in names if not name.startswith("_")] == []


@each_file
def test_a_second_plan_finds_nothing_that_changes_by_itself(file: Path) -> None:
    text = file.read_text(encoding="utf-8")

    assert not re.search(
        r"\b(random_\w+|null_resource|timestamp|plantimestamp|uuid|local-exec)\b", text
    )


@each_directory
def test_every_rule_says_what_it_received_and_what_would_pass(directory: Path) -> None:
    messages = [
        rule["error_message"]
        for _, body in _blocks(directory, "variable")
        for rule in body.get("validation", [])
    ]

    assert [message for message in messages if "would pass" not in message] == []
    assert [
        message
        for message in messages
        if "received" not in message and "not supported yet" not in message
    ] == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("google_compute_region_instance_group_manager", id="M16-no-regional-group"),
        pytest.param("target_size_policy", id="M16-no-bulk-group"),
        pytest.param("accelerator_topology_mode", id="Q7-no-provision-only"),
    ],
)
def test_what_flex_start_does_without_is_written_nowhere(words: str) -> None:
    assert [file.name for file in FILES if words in file.read_text(encoding="utf-8")] == []


def test_no_policy_is_changed_for_its_text() -> None:
    # The provider patches one whole (7.45.0), and Google changes none that is in use.
    policies = [
        body
        for file in FILES
        for resource in _parse(file).get("resource", [])
        for kind, named in resource.items()
        for body in named.values()
        if kind.strip('"') == "google_compute_resource_policy"
    ]
    assert len(policies) == 3
    assert all("description" in it["lifecycle"][0]["ignore_changes"] for it in policies)
