"""The layers of tests: what each needs, which of them `make test` has, and how they are run.

`python -m tests.layers quick|rest|all|LAYER` is what the Makefile calls.
"""

from __future__ import annotations

import argparse
import enum
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TREE: Final = Path(__file__).parents[1]


class Spread(enum.Enum):
    """How a layer's tests are spread over processes."""

    TESTS = "worksteal"
    FILES = "loadfile"
    NONE = ""


class Part(enum.StrEnum):
    """Which of all tests to run."""

    QUICK = "quick"
    REST = "rest"
    ALL = "all"


@dataclass(frozen=True)
class Layer:
    """A folder of tests.

    Attributes:
        name: The folder below `tests/`.
        about: What is tested there.
        needs: What it takes beyond Python, Terraform and loopback; "" for nothing.
        spread: How its tests share processes.
    """

    name: str
    about: str
    needs: str = ""
    spread: Spread = Spread.TESTS

    @property
    def quick(self) -> bool:
        """Whether `make test` has it, but for what is marked as slow."""
        return not self.needs

    @property
    def folder(self) -> Path:
        """Where its tests are."""
        return TREE / "tests" / self.name


LAYERS: Final = (
    Layer("unit", "no process, no network"),
    Layer("contract", "settings, README, examples and variables agree; the order of imports"),
    Layer("terraform", "the modules: format, validate, terraform test"),
    Layer(
        "rehearsal", "the simulated cloud and the stand-in provider, against recorded traffic too"
    ),
    Layer("runs", "whole actions against the simulated cloud"),
    Layer("chaos", "ten blows at fixed moments"),
    Layer(
        "startup",
        "the real start-up script in namespaces, Ray on three VMs",
        needs="Linux",
        spread=Spread.FILES,
    ),
    Layer(
        "kubernetes",
        "a real Kubernetes and Kueue",
        needs="Go, and 11 minutes to build them once",
        spread=Spread.NONE,
    ),
    Layer(
        "image",
        "the Dockerfile, built and run",
        needs="root on Debian, or a container engine",
        spread=Spread.NONE,
    ),
)


@dataclass
class Count:
    """What became of a layer's tests.

    Attributes:
        passed: How many passed.
        failed: How many failed, or could not be set up or cleared away.
        skipped: How many said that they can't run here.
        left_out: How many are in the other part of the tests.
        seconds: The time of all of them, one after the other.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: int = 0
    seconds: float = 0.0


def of(path: Path) -> Layer | None:
    """The layer that a file or folder is in."""
    return next((it for it in LAYERS if it.folder in (path, *path.parents)), None)


def table(counts: Mapping[str, Count]) -> list[str]:
    """What was run, a line for each layer, and a line of sums."""
    numbers = [
        (name, it.passed, it.failed, it.skipped, it.left_out, it.seconds)
        for name, it in counts.items()
    ]
    sums = tuple(map(sum, list(zip(*numbers, strict=True))[1:])) if numbers else (0,) * 5
    columns = "{:<12}{:>8}{:>8}{:>9}{:>10}{:>10}"
    head = columns.format("layer", "passed", "failed", "skipped", "left out", "seconds")
    rows = [(*row[:5], f"{row[5]:.0f}") for row in [*numbers, ("together", *sums)]]
    return [head, *(columns.format(*row) for row in rows)]


def commands(wanted: Sequence[Layer], part: Part, workers: int) -> list[list[str]]:
    """pytest's arguments, one list for each start; layers that are spread alike share a start."""
    selecting = {
        Part.QUICK: ["--quick"],
        Part.REST: ["--rest"],
        Part.ALL: [],
    }[part]
    found = []
    for spread in Spread:
        folders = [f"tests/{it.name}" for it in wanted if it.spread is spread]
        spreading = [] if spread is Spread.NONE else ["-n", str(workers), "--dist", spread.value]
        # What is not spread has tests that need a machine for themselves, and a start for each.
        starts = [[folder] for folder in folders] if spread is Spread.NONE else [folders]
        found += [[*selecting, *spreading, *start] for start in starts if start]
    return found


def chosen(name: str) -> tuple[Sequence[Layer], Part]:
    """The layers of a word on the command line, and the part of their tests.

    Raises:
        KeyError: There is no such layer.
    """
    if name == Part.QUICK:
        return [it for it in LAYERS if it.quick], Part.QUICK
    if name in (Part.REST, Part.ALL):
        return LAYERS, Part(name)
    return [{it.name: it for it in LAYERS}[name]], Part.ALL


def run(name: str, workers: int, more: Iterable[str]) -> int:
    """Run layers, and say at the end what was run and for how long.

    Args:
        name: quick, rest, all, or a layer.
        workers: Processes that share the tests.
        more: More arguments for pytest.

    Returns:
        0, or the first of pytest's exit codes that is another.
    """
    began = time.monotonic()
    counts: dict[str, Count] = {}
    code = 0
    starts = commands(*chosen(name), workers)
    with tempfile.TemporaryDirectory() as folder:
        for number, start in enumerate(starts):
            report = Path(folder, f"{number}.json")
            argv = [sys.executable, "-m", "pytest", f"--counts={report}", *start, *more]
            code = code or subprocess.run(argv, cwd=TREE, check=False).returncode
            if report.exists():
                document = json.loads(report.read_text(encoding="utf-8"))
                counts |= {layer: Count(**count) for layer, count in document.items()}
    if len(starts) > 1:
        sys.stdout.write("\n".join(["", *table(counts)]) + "\n")
    sys.stdout.write(f"make's {name}: {time.monotonic() - began:.0f} s, exit code {code}\n")
    return code


def write(path: Path, counts: Mapping[str, Count]) -> None:
    """Keep counts for `run`."""
    document = {name: asdict(count) for name, count in counts.items()}
    path.write_text(json.dumps(document), encoding="utf-8")


def main() -> int:
    """What the Makefile calls."""
    parser = argparse.ArgumentParser(prog="python -m tests.layers", description=__doc__)
    parser.add_argument("name", choices=[*Part, *(it.name for it in LAYERS)])
    parser.add_argument("--workers", type=int, default=2, help="processes that share the tests")
    arguments, more = parser.parse_known_args()
    return run(arguments.name, arguments.workers, more)


if __name__ == "__main__":
    sys.exit(main())
