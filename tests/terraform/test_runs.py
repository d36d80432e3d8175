"""`terraform test`, file by file."""

from pathlib import Path
from typing import Any

import pytest

from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
FILES = sorted(
    file.relative_to(SOURCES)
    for file in SOURCES.rglob("tests/*.tftest.hcl")
    if ".terraform" not in file.parts
)


def _failures(messages: list[dict[str, Any]]) -> list[str]:
    """What did not pass, in words; also when nothing ran."""
    summaries = [found["test_summary"] for found in messages if found["type"] == "test_summary"]
    if [summary["status"] for summary in summaries] == ["pass"]:
        return []  # errors may be among the messages: those that a run expects
    found = [message for message in messages if message["type"] == "diagnostic"]
    return [
        f"the whole: {summaries}",
        *(
            f"{message.get('@testrun', '')}: {message['diagnostic']['summary']}: "
            f"{message['diagnostic']['detail']}"
            for message in found
        ),
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.as_posix())
def test_the_runs_of_a_file_pass(terraform: Terraform, file: Path) -> None:
    messages = terraform.test(file.parents[1].as_posix(), file.name)

    assert _failures(messages) == []
