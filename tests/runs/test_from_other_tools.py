"""Each published example of another tool's is a cluster and a job here, as the page has it."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rehearsal.inventory import stays
from tests.runs.conftest import Rehearsal

PAGE = Path(__file__).parents[2] / "docs/how-to/from-other-tools.md"
ROW = re.compile(r"^\| ([^|]*) \| `([^`|]*)` \| `([^`|]*)` \| [^|]*, (\d+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text("utf-8"))
SLOW = pytest.mark.slow(
    sibling="tests/runs/test_jobs_with_a_cluster.py::test_one_command_makes_a_cluster_runs_a_job_and_removes_it_although_the_job_fails"
)


def _rows() -> list[Any]:
    return [pytest.param(*row, id=re.sub(r"\W+", "_", row[0]), marks=SLOW) for row in ROWS]


@pytest.mark.parametrize(("name", "settings", "command", "lines"), _rows())
def test_an_example_of_another_tool_is_made_run_and_removed(
    rehearsal: Rehearsal, name: str, settings: str, command: str, lines: str
) -> None:
    del name
    own = dict(it.split("=", 1) for it in settings.split())
    rehearsal.settings |= own
    rehearsal.presume()
    before = [line for line in rehearsal.resources() if not stays(line)]
    folder = rehearsal.folder / "code"
    words = shlex.split(command)
    for word in words:
        if re.fullmatch(r"[\w./-]+\.(py|sh|json|yaml|yml)", word):
            (folder / word).parent.mkdir(parents=True, exist_ok=True)
            (folder / word).write_text("")
    folder.mkdir(exist_ok=True)
    if words[0] in {"tune", "vllm"}:
        (folder / "requirements.txt").write_text(f"{words[0]}\n")
    whole = ("--create", "--destroy-after", "--yes", f"--copy={folder}")
    ended = rehearsal.run("Run", *whole, behind=("--", *words))
    assert ended.code == 0, ended.said
    (job,) = ended.document["jobs"]
    assert job["state"] == "succeeded"
    assert [line for line in rehearsal.resources() if not stays(line)] == before
    # An env.list has three lines more, and the command is one.
    assert int(lines) == len(own.keys() - {"ZONE"}) + 4


def test_the_page_has_fourteen_examples() -> None:
    assert len(ROWS) == 14
