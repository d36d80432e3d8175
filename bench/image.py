"""The image: what it weighs, layer by layer, and how soon it answers.

It measures what `make image` made, or the image that IMAGE names, on the engine that answers.
Where there is none it says so, on stderr and in the table's place.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measuring import row, run, timed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USUAL = "aiinfra"
"""The name that the Makefile gives it."""

_SETTINGS = "PROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n"
_LEAST_MB = 0.1
"""Layers below this only carry metadata."""


class NothingToMeasureError(Exception):
    """There is no engine, or no image in it."""


class _Image:
    """An image in an engine.

    `environ`: DOCKER may name the client, IMAGE the image; DOCKER_HOST is the client's own.

    Raises:
        NothingToMeasureError: It isn't there.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._client = environ.get("DOCKER") or "docker"
        self.name = environ.get("IMAGE") or _USUAL
        if shutil.which(self._client, path=environ.get("PATH", "")) is None:
            raise NothingToMeasureError(f"there is no {self._client} on PATH.")
        self.megabytes = int(self._ask("image", "inspect", "--format", "{{.Size}}")) / 1e6

    def layers(self) -> list[tuple[float, str]]:
        """Megabytes and origin of each layer that weighs something, the lowest first."""
        lines = self._ask(
            "history", "--no-trunc", "--human=false", "--format={{.Size}} {{.CreatedBy}}"
        )
        pairs = [line.split(" ", 1) for line in lines.splitlines()]
        found = [(int(size) / 1e6, _origin(made_by)) for size, made_by in pairs]
        return [layer for layer in reversed(found) if layer[0] >= _LEAST_MB]

    def run(self, *arguments: str, options: Sequence[str] = ()) -> None:
        """Run it to its end, without a network."""
        started = [self._client, "run", "--rm", "--network=none", *options, self.name]
        run([*started, *arguments], self._environ)

    def _ask(self, *command: str) -> str:
        """What the engine says of the image."""
        done = subprocess.run(
            [self._client, *command, self.name],
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NothingToMeasureError(done.stderr.strip())
        return done.stdout


def measure(environ: Mapping[str, str], runs: int) -> list[str]:
    """The rows of its tables; one line that says why, when there is nothing to measure."""
    try:
        image = _Image(environ)
    except NothingToMeasureError as error:
        why = f"Not measured: {error}"
        sys.stderr.write(f"SKIPPED: the image. {why}\n")
        return [why]
    return [*_sizes(image), "", *_starts(image, runs)]


def _sizes(image: _Image) -> list[str]:
    return [
        "| layer | MB |",
        "| --- | --- |",
        *(f"| {origin} | {megabytes:.1f} |" for megabytes, origin in image.layers()),
        f"| all | {image.megabytes:.0f} |",
    ]


def _starts(image: _Image, runs: int) -> list[str]:
    """The commands in turn with a program that does nothing, as starting a container takes time."""
    with tempfile.NamedTemporaryFile("w", prefix="bench-", suffix=".list") as file:
        file.write(_SETTINGS)
        file.flush()
        settings = ("--env-file", str(Path(file.name)))
        commands = {
            "a container that does nothing": functools.partial(
                image.run, options=("--entrypoint", "/bin/true")
            ),
            "`IMAGE --version`": functools.partial(image.run, "--version"),
            "`IMAGE Validate --offline`": functools.partial(
                image.run, "Validate", "--offline", options=settings
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, call in commands.items():
                times[name].append(timed(call))
    return [
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        *(row(name, taken) for name, taken in times.items()),
    ]


def _origin(made_by: str) -> str:
    """The line of the Dockerfile that made a layer, short enough for a table."""
    line = re.sub(r"^(?:/bin/sh -c )?(?:#\(nop\) )?|\s*# buildkit$", "", made_by).strip()
    line = re.sub(r"\s+", " ", line).replace("|", "\\|")
    short = line if len(line) <= 60 else f"{line[:57]}..."  # noqa: PLR2004 - a table's column
    return f"`{short}`" if short else "the base"
