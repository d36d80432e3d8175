"""What is true of Google Cloud, as data: each file says where its facts are from, and of when.

The program under rehearsal has a catalogue of its own. Nothing here is made from that: where the
two differ, one is wrong, and a rehearsal or the comparison of the two shows it. What both had to
take from one place is in `shared_with_the_program.json` alone.
"""

import json
from pathlib import Path
from typing import Any


def read(name: str) -> dict[str, Any]:
    """The facts of a file beside this one."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
    return found
