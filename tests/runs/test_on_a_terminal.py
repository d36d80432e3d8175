"""A person at a terminal: the question before a first Create, and how much there is to read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rehearsal.inventory import stays
from tests.image.terminal import typed
from tests.runs.conftest import PROGRAM

if TYPE_CHECKING:
    import signal

    from tests.runs.conftest import Rehearsal

_QUESTION = b"Go on? [Y/n] "
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def create(rehearsal: Rehearsal, keys: bytes | signal.Signals, *options: str) -> tuple[int, str]:
    """Run Create on a terminal, where somebody answers its question with these keys."""
    settings = rehearsal.folder / "typed.list"
    settings.write_text("".join(f"{name}={it}\n" for name, it in rehearsal.settings.items()))
    command = [*PROGRAM, "--env-file", str(settings), *options, "Create"]
    environ = {**rehearsal.environ, "TERM": "dumb"}
    code, said = typed(command, environ, when=_QUESTION, keys=keys)
    return code, _COLOURS.sub("", said).replace("\r", "")


def test_a_first_create_asks_once_and_a_no_makes_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.settings["IMAGE_FAMILY_NAME"] = "pytorch-2-9-cu129-ubuntu-2404-nvidia-580"
    code, said = create(rehearsal, b"n\n", "--output", "json")
    assert code == 2, said
    document = json.loads(said[said.index("\n{\n") :])
    (problem,) = document["problems"]
    assert (problem["code"], problem["what"]) == (
        "declined",
        "Not created, as you said: nothing was made",
    )
    assert document["plan"]["change"] == "new"
    assert [line for line in rehearsal.resources() if not stays(line)] == []

    code, said = create(rehearsal, b"\n")
    assert code == 0, said
    lines = said.splitlines()
    assert len(lines) <= 40, said
    assert max(len(line) for line in lines if "gcloud" not in line and "://" not in line) <= 100
    assert said.count("Go on?") == 1

    # What changes nothing asks nothing.
    code, said = create(rehearsal, b"n\n")
    assert (code, "Go on?" in said) == (0, False), said
    assert "No changes: " in said
