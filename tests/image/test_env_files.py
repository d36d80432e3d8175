"""Env files as people write them, read by the engine first and by the program then."""

from pathlib import Path
from typing import Any

import pytest

from tests.image.conftest import Image
from tests.image.runs import MANDATORY, OFFLINE, document


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('ZONE="us-central1-a"', {"ZONE": "us-central1-a"}),
        ("ZONE='us-central1-a'", {"ZONE": "us-central1-a"}),
        ("ZONE= us-central1-a ", {"ZONE": "us-central1-a"}),
        ("ZONE=us-central1-a\r", {"ZONE": "us-central1-a"}),
        ("# a comment\nZONE=us-central1-a", {"ZONE": "us-central1-a"}),
        ("ZONE=europe-west4-a\nZONE=us-central1-a", {"ZONE": "us-central1-a"}),
        ("ZONE=us-central1-a\nINSTANCE_COUNT=", {"INSTANCE_COUNT": 1}),
        ('ZONE=us-central1-a\nLABELS={ a = "b" }', {"LABELS": {"a": "b"}}),
    ],
    ids=["double", "single", "blanks", "windows", "comment", "twice", "empty", "map"],
)
def test_an_env_file_is_read_as_it_is_meant(
    image: Image, tmp_path: Path, content: str, expected: dict[str, Any]
) -> None:
    file = tmp_path / "env.list"
    file.write_text(f"PROJECT_ID=my-project\nNAME_PREFIX=np\n{content}\n", newline="")

    found = document(
        image.run(
            *("Validate", "--offline", "--output=json"), options=("--env-file", str(file), *OFFLINE)
        )
    )

    assert found["ok"], found["problems"]
    assert expected.items() <= found["settings"].items()


def test_a_byte_order_mark_is_no_part_of_the_first_name(image: Image, tmp_path: Path) -> None:
    file = tmp_path / "env.list"
    file.write_bytes(b"\xef\xbb\xbf" + MANDATORY.encode())

    given = image.run("Validate", "--offline", options=("--env-file", str(file), *OFFLINE))

    assert given.code == 0, given.err


def test_a_bare_name_takes_its_value_from_the_callers_environment(
    image: Image, tmp_path: Path
) -> None:
    file = tmp_path / "env.list"
    file.write_text("PROJECT_ID\nNAME_PREFIX=np\nZONE=us-central1-a\n")
    run = ("run", "--rm", "--env-file", str(file), image.name, "Validate", "--offline")

    with_it = image.engine.run(*run, environ={"PROJECT_ID": "my-project"})
    without = image.engine.run(*run)

    assert with_it.code == 0, with_it.err
    assert without.code == 2
    assert "PROJECT_ID" in without.err
