"""What the page on images says they bring, beside the facts that it has this from."""

import json
from pathlib import Path
from typing import Final

import pytest

from rehearsal.cloud.facts import images

_TREE: Final = Path(__file__).parents[2]
BRINGS: Final = json.loads((_TREE / "tests/startup/image.json").read_text("utf-8"))["brings"]
_LINES: Final = ("pytorch-", "common-", "ubuntu-accelerator-")


def test_the_page_has_each_fact_and_each_fact_has_a_source() -> None:
    page = (_TREE / "docs/how-to/boot-image.md").read_text("utf-8")
    for row in BRINGS:
        assert f"| {' | '.join([row['what'], *row['cells']])} |\n" in page
        assert row["source"]
    table = page.partition("What Google's images bring")[2].partition("\n\nStart-up")[0]
    assert table.count("\n| ") == len(BRINGS) + 2


@pytest.mark.parametrize(
    ("program", "what"),
    [("docker", "docker"), ("torchrun", "PyTorch"), ("jupyter", "JupyterLab"), ("nvcc", "CUDA's")],
)
def test_a_rehearsal_finds_the_programs_that_an_image_brings(program: str, what: str) -> None:
    (row,) = [it for it in BRINGS if it["what"].startswith(what)]
    has = [line for line, cell in zip(_LINES, row["cells"], strict=True) if cell != "no"]
    assert images.PROGRAMS[program] == has
