"""When each of Terraform's commands runs in one Create, and what is between them."""

from __future__ import annotations

import functools
import os
import shlex
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.measuring import Program, timed
from provision import terraform
from rehearsal import session
from rehearsal.cloud.server import Cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH: Final = 50
_CREATES: Final = 5

# A Terraform that notes when it began and ended.
_NOTING: Final = """#!/bin/bash
begin=$EPOCHREALTIME
{terraform} "$@"
code=$?
echo "$begin $EPOCHREALTIME $1" >> {log}
exit $code
"""


@dataclass(frozen=True)
class _Span:
    """One of Terraform's commands: when it began and ended, in seconds from Create's beginning."""

    words: str
    begin: float
    end: float


def measure(environ: dict[str, str]) -> list[str]:
    """Create some clusters one after the other, and draw the one that took the median time."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            program = Program(folder, cloud.base_url, _noted(folder, environ))
            program.run("Create", prefix="warm-up")
            found = sorted(
                (_created(folder, program, number) for number in range(_CREATES)),
                key=lambda it: it[0],
            )
    seconds, spans = found[len(found) // 2]
    return ["```text", *_drawn(seconds, spans), "```"]


def _noted(folder: Path, environ: dict[str, str]) -> dict[str, str]:
    """The environment in which Terraform's commands are written down."""
    programs = folder / "bin"
    programs.mkdir()
    noting = programs / "terraform"
    noting.write_text(
        _NOTING.format(
            terraform=shlex.join(terraform.find(environ).argv), log=shlex.quote(str(folder / "log"))
        ),
        encoding="utf-8",
    )
    noting.chmod(0o700)
    return environ | {"PATH": f"{programs}{os.pathsep}{environ['PATH']}"}


def _created(folder: Path, program: Program, number: int) -> tuple[float, list[_Span]]:
    """How long a Create takes, and its commands."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    begin = time.time()
    seconds = timed(functools.partial(program.run, "Create", prefix=f"time-{number}"))
    rows = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    spans = [_Span(words, float(a) - begin, float(b) - begin) for a, b, words in rows]
    return seconds, sorted(spans, key=lambda it: it.begin)


def _drawn(seconds: float, spans: list[_Span]) -> Iterator[str]:
    """A line for each command with a bar, and one for the time in which none runs."""
    reached = alone = 0.0
    for span in spans:
        alone += max(0.0, span.begin - reached)
        reached = max(reached, span.end)
        left = round(_WIDTH * span.begin / seconds)
        bar = "#" * max(1, round(_WIDTH * (span.end - span.begin) / seconds))
        times = f"{span.begin:5.2f} {span.end:5.2f}"
        yield f"{f'terraform {span.words}':18}{times}  {' ' * left}{bar}"
    yield f"{'the end':18}{'':5} {seconds:5.2f}"
    yield f"No command of Terraform's runs for {alone + seconds - reached:.2f} of these seconds."
