"""What docs/reference/problems.md says of each code of a problem or note."""

import re
from pathlib import Path
from typing import Final

TEXT: Final = (Path(__file__).parents[1] / "docs/reference/problems.md").read_text(encoding="utf-8")
ROWS: Final = {
    row["code"]: row
    for row in re.finditer(
        r"^\| `(?P<code>[a-z-]+)` \| (?P<meaning>[^|]+)"
        r"(?: \| (?P<exits>[\d, ]+) \| (?P<retryable>yes|no))? \| (?P<remedy>[^|]+) \|$",
        TEXT,
        re.MULTILINE,
    )
}
"""Code -> its row."""


def exits(code: str) -> set[int]:
    """The exit codes of runs that fail with a code; none of one that is only ever a note."""
    said = ROWS[code]["exits"]
    return set(map(int, said.split(", "))) if said else set()
