"""Measure what the program costs on top of Terraform, and how it grows: `make bench`.

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
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import gke, image, jobs, scale, timeline, zones
from bench.measuring import ENTRYPOINT, Program, row, run, timed, worked
from provision import intake, terraform
from provision.deployment import workspace
from provision.deployment.kind import deploy
from provision.kinds import registry
from provision.state.location import locate
from rehearsal import session
from rehearsal.cloud.server import Cloud

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SLOW_IMPORT_MS = 10
_KEEPS_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_ROOT = Path(__file__).parents[1]
_PAGE = _ROOT / "docs" / "development" / "performance.md"
_HEAD = """# Performance

Made by `python -m bench`: what the program costs on top of Terraform, and how it grows.
Machines are noisy, so figures are taken in turn with their baseline, and only ratios hold.
Processor time is what the operating system counts for a command and all that it starts. What else
runs on the machine adds little to it, but it counts twice what two processors do at the same time.

The goals are 0.4 s for Create on top of Terraform, and 0.15 s for `Validate --offline`. Both are
missed. Validate is nearly all loading. pydantic-settings with pydantic reads every setting, and
asyncio comes with that: a program that has but a model of one field takes 0.16 s where Validate
takes 0.28 (27 November, the least of 15 in turn), so that 0.15 is not to be had with it; some 160
dataclasses, whose methods Python writes again at each start, are another quarter. To leave out what
a valid run never uses (archives, and requests to Google) was tried: it took 1 % off, and was not
kept; nor did pydantic without its plugins load faster. Create loads another 0.15 s for Google
(requests, google-auth, google-cloud-storage), while Terraform says its version and the project its
number. The rest of it is some thirty requests: the online checks, the state, the VMs and their
start-up, which nobody who types Terraform's commands looks at. The timeline shows where: most
before Terraform's first command that needs the settings, hardly any between its commands.

## Before and since

Before, every start loaded rich, tenacity and python-terraform, and the image had the kubernetes
client. Both versions in turn on one machine, with kept bytecode; medians of 15 pairs for Validate,
10 for the help, and 6 for Create.

| | before | since | ratio |
| --- | --- | --- | --- |
| `Validate --offline`, seconds | 0.34 | 0.25 | 0.72 |
| the same, of processor time | 0.33 | 0.23 | 0.72 |
| `--help`, of processor time | 0.31 | 0.07 | 0.21 |
| `Create` on top of the five commands, of processor time | 0.74 | 0.57 | 0.78 |
| Python packages of the image, made as the Dockerfile does, in MB | 177 | 104 | 0.59 |
"""


class Bench(Program):
    """A simulated cloud in which everything is done at once, and both ways to make a cluster."""

    def __init__(self, folder: Path, base_url: str, environ: dict[str, str]) -> None:
        super().__init__(folder, base_url, environ)
        self._folder = folder
        self._binary = terraform.find(environ)

    def by_hand(self, prefix: str) -> Path:
        """The folder in which somebody types Terraform's commands, ready but for them."""
        loaded = intake.load({"ACTION": "Create", **self.values(prefix)})
        if loaded.settings is None:
            raise SystemExit(str(loaded.problems))
        kind = registry.of(loaded.settings)
        target = deploy(kind, kind.spec(loaded.settings), locate(loaded.settings))
        place = self._folder / prefix
        return workspace.fill_folder(place, target, target.variables, backend=True)

    def type_commands(self, root: Path) -> None:
        """The five commands that do what Create does, which reads the outputs in the state."""
        environ = terraform.environment(self.environ)
        values = f"-var-file={workspace.VARIABLES_FILE}"
        for command in (
            "init -input=false -no-color",
            f"plan -input=false -out=plan {values} -lock=false -no-color",
            "show -json plan",
            "apply -input=false -lock=false -no-color plan",
            "output -json",
        ):
            run([*self._binary.argv, *command.split()], environ, root)


def _compare(bench: Bench, runs: int) -> list[str]:
    program, typed = [], []
    for number in range(runs):
        program.append(worked(functools.partial(bench.run, "Create", prefix=f"tool-{number}")))
        root = bench.by_hand(f"hand-{number}")
        typed.append(worked(functools.partial(bench.type_commands, root)))
    return _paired("`Create`", program, "the same five Terraform commands typed by hand", typed)


def _validation(bench: Bench, runs: int) -> list[str]:
    idle = functools.partial(run, [sys.executable, "-c", ""], bench.environ)
    pairs = [
        (worked(functools.partial(bench.run, "Validate", "--offline")), worked(idle))
        for _ in range(runs)
    ]
    ours, bare = [mine for mine, _ in pairs], [theirs for _, theirs in pairs]
    return _paired("`Validate --offline`", ours, "Python that does nothing", bare)


def _paired(
    name: str,
    ours: Sequence[tuple[float, float]],
    baseline: str,
    theirs: Sequence[tuple[float, float]],
) -> list[str]:
    """A table of two calls that were made in turn, with what one takes on top of the other."""
    rows = ["| seconds | least | median | most |", "| --- | --- | --- | --- |"]
    for column, words in enumerate(("", ", of processor time")):
        mine = [one[column] for one in ours]
        other = [one[column] for one in theirs]
        pairs = list(zip(mine, other, strict=True))
        rows += [
            row(f"{name}{words}", mine),
            row(f"{baseline}{words}", other),
            row(f"on top{words}", [a - b for a, b in pairs]),
            row(f"ratio, pair by pair{words}", [a / b for a, b in pairs]),
        ]
    return rows


def _imports(environ: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        # As above: nobody is asked.
        bench = Bench(Path(name), "http://127.0.0.1:9", environ)
        values = bench.environ | bench.values("np")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ENTRYPOINT), "Validate", "--offline"],
        env=values,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \| ( *)(\S+)", done.stderr)
    rows = sorted(((int(whole) / 1000, name) for _, whole, _, name in found), reverse=True)
    wanted = [entry for entry in rows if entry[0] >= _SLOW_IMPORT_MS and entry[1].count(".") <= 1]
    return [
        "| module, with all that it imports first | ms |",
        "| --- | --- |",
        *(f"| `{name}` | {whole:.0f} |" for whole, name in wanted),
    ]


def _on_top(environ: dict[str, str], runs: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            bench = Bench(folder, cloud.base_url, environ)
            bench.run("Create", prefix="warm-up")
            return _compare(bench, runs)


def _first_line(environ: dict[str, str], runs: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            bench = Bench(folder, cloud.base_url, environ)
            bench.first_line("Plan")
            idle = functools.partial(run, [sys.executable, "-c", ""], bench.environ)
            pairs = [(bench.first_line("Plan"), timed(idle)) for _ in range(runs)]
    return [
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        row("`Plan`, to its first line", [ours for ours, _ in pairs]),
        row("Python that does nothing", [bare for _, bare in pairs]),
    ]


def _validate(environ: dict[str, str], runs: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        # Without Google there is nobody at this address who could be asked.
        return _validation(Bench(Path(name), "http://127.0.0.1:9", environ), runs)


_PARTS: dict[str, tuple[str, Callable[[dict[str, str], int], list[str]]]] = {
    "create": ("Create, in a rehearsal whose cloud does everything at once", _on_top),
    "timeline": (
        "When one Create does what, in such a rehearsal",
        lambda environ, _: timeline.measure(environ),
    ),
    "validate": ("Validate", _validate),
    "first": ("The first line of an action that asks Google, in a rehearsal", _first_line),
    "start-up": (
        "Start-up of 1,000 VMs, in a rehearsal",
        lambda environ, _: scale.start_up(environ),
    ),
    "plan": ("Plan, with few and many VMs", scale.plans),
    "copy": ("Plan, with and without files to copy", scale.copies),
    "gke": ("GKE, in a rehearsal", gke.measure),
    "zones": (
        "Machines wherever they are, in a rehearsal",
        lambda environ, _: zones.measure(environ),
    ),
    "jobs": (
        "A job on a warm cluster, in a rehearsal, whose seconds are five of Google's",
        lambda environ, _: jobs.measure(environ),
    ),
    "image": ("The image", image.measure),
    "imports": ("What `Validate --offline` loads", lambda environ, _: _imports(environ)),
}


def _machine(runs: int) -> str:
    return json.dumps(
        {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "runs": runs,
        }
    )


def _processor() -> str:
    """What the machine calls its processor; "" where it does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def main() -> None:
    """Measure, and print the tables as Markdown, or write them down."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each of a pair")
    parser.add_argument("--only", choices=_PARTS, action="append", help="not all; may be repeated")
    parser.add_argument(
        "--write", action="store_true", help=f"write the tables to {_PAGE.relative_to(_ROOT)}"
    )
    options = parser.parse_args()
    # As in the image, whose bytecode is kept: without it, a start takes half as long again.
    kept = {name: value for name, value in os.environ.items() if name != _KEEPS_NO_BYTECODE}
    environ = kept | {"CLOUD_CLOCK_RATE": "0"}
    tables = [
        f"## {heading}\n\n" + "\n".join(measure(environ, options.runs))
        for name, (heading, measure) in _PARTS.items()
        if name in (options.only or _PARTS)
    ]
    text = "\n\n".join([f"Measured on {_machine(options.runs)}.", *tables]) + "\n"
    if options.write:
        _PAGE.write_text(f"{_HEAD}\n{text}", encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
