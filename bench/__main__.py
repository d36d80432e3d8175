"""Measure what the program costs on top of Terraform: `make bench`.

Every figure is taken in turn with its baseline in the same run, A B A B, because machines are noisy
and only the ratio holds. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from provision import deployment, settings, terraform
from provision.rehearsal import session
from provision.rehearsal.cloud.server import Cloud
from provision.terraform import arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ENTRYPOINT = Path(__file__).parents[1] / "entrypoint.py"
_SLOW_IMPORT_MS = 10


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _run(argv: Sequence[str], environ: dict[str, str], cwd: Path | None = None) -> None:
    subprocess.run(
        argv, env=environ, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )


class Bench:
    """A simulated cloud in which everything is done at once, and both ways to make a cluster."""

    def __init__(self, folder: Path, base_url: str, environ: dict[str, str]) -> None:
        self._folder = folder
        self._environ = session.environment(base_url, folder, environ)
        self._binary = terraform.find(environ)

    def _values(self, prefix: str) -> dict[str, str]:
        # A named image: the search for a default one is no part of the comparison.
        return {
            "PROJECT_ID": "my-project",
            "NAME_PREFIX": prefix,
            "ZONE": "us-central1-a",
            "IMAGE_FAMILY_NAME": "common-cu128-ubuntu-2204-nvidia-570",
        }

    def program(self, prefix: str) -> None:
        """Create, by the program."""
        values = self._environ | self._values(prefix)
        _run([sys.executable, str(_ENTRYPOINT), "Create"], values)

    def by_hand(self, prefix: str) -> Path:
        """The folder in which somebody types Terraform's commands, ready but for them."""
        loaded = settings.load({"ACTION": "Create", **self._values(prefix)})
        if loaded.settings is None:
            raise SystemExit(str(loaded.problems))
        target = deployment.make(loaded.settings)
        place = self._folder / prefix
        return deployment.fill_folder(place, target, target.variables, backend=True)

    def type_commands(self, root: Path) -> None:
        """The five commands that do what Create does."""
        environ = terraform.environment(self._environ)
        for command in (
            arguments.init(backend=True, color=False),
            arguments.plan(
                var_file=deployment.VARIABLES_FILE, destroy=False, lock=True, color=False
            ),
            arguments.show(),
            arguments.apply(color=False),
            arguments.output(),
        ):
            _run([*self._binary.argv, *command], environ, root)

    def validate(self) -> None:
        """Validate without Google."""
        values = self._environ | self._values("np")
        _run([sys.executable, str(_ENTRYPOINT), "Validate", "--offline"], values)


def _row(name: str, times: Sequence[float]) -> str:
    low, middle, high = min(times), statistics.median(times), max(times)
    return f"| {name} | {low:.2f} | {middle:.2f} | {high:.2f} |"


def _compare(bench: Bench, runs: int) -> list[str]:
    program, typed = [], []
    for number in range(runs):
        program.append(_timed(functools.partial(bench.program, f"tool-{number}")))
        root = bench.by_hand(f"hand-{number}")
        typed.append(_timed(functools.partial(bench.type_commands, root)))
    ratios = [mine / theirs for mine, theirs in zip(program, typed, strict=True)]
    extra = [mine - theirs for mine, theirs in zip(program, typed, strict=True)]
    return [
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        _row("`Create`", program),
        _row("the same five Terraform commands typed by hand", typed),
        _row("on top", extra),
        _row("ratio, pair by pair", ratios),
    ]


def _validation(bench: Bench, runs: int) -> list[str]:
    ours = [_timed(bench.validate) for _ in range(runs)]
    bare = [_timed(lambda: _run([sys.executable, "-c", ""], dict(os.environ))) for _ in range(runs)]
    return [
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        _row("`Validate --offline`", ours),
        _row("Python that does nothing", bare),
    ]


def _imports() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import provision.cli"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \| ( *)(\S+)", done.stderr)
    rows = sorted(((int(whole) / 1000, name) for _, whole, _, name in found), reverse=True)
    wanted = [row for row in rows if row[0] >= _SLOW_IMPORT_MS and row[1].count(".") <= 1]
    return [
        "| module, with all that it imports first | ms |",
        "| --- | --- |",
        *(f"| `{name}` | {whole:.0f} |" for whole, name in wanted),
    ]


def main() -> None:
    """Measure, and print the tables as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each of a pair")
    runs = parser.parse_args().runs
    environ = dict(os.environ) | {"CLOUD_CLOCK_RATE": "0"}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            bench = Bench(folder, cloud.base_url, environ)
            bench.program("warm-up")
            parts = {
                "Create, in a rehearsal whose cloud does everything at once": _compare(bench, runs),
                "Validate": _validation(bench, runs),
                "Importing": _imports(),
            }
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "runs": runs,
    }
    sys.stdout.write(f"Measured on {json.dumps(machine)}.\n")
    for heading, lines in parts.items():
        sys.stdout.write(f"\n## {heading}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
