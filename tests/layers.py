"""The layers of tests: what each needs, which of them `make test` has, and how they are run.

`python -m tests.layers quick|rest|all|LAYER` is what the Makefile calls.
"""

import argparse
import enum
import functools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rehearsal.provider import given, mirror
from tests import real_provider

TREE: Final = Path(__file__).parents[1]
_SLOWEST: Final = 50
"""How many tests are listed, the slowest first."""


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


_PER_PROCESSOR: Final = {Part.QUICK: 1.5, Part.REST: 2.5, Part.ALL: 2}
"""How many tests a processor takes at a time: what is slow waits more, for sockets and clocks."""


@dataclass(frozen=True)
class Layer:
    """A folder of tests."""

    name: str  # the folder below `tests/`
    about: str  # what is tested there
    needs: str = ""  # what it takes beyond Python, Terraform and loopback; "" for nothing
    spread: Spread = Spread.TESTS  # how its tests share processes
    # whether `make test` has but the first row of a test with several, unless rows are marked as
    # slow by hand
    one_row: bool = False
    # tests of other layers that it runs again, in its own way; () for those of its folder
    again: tuple[str, ...] = ()

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
    Layer("runs", "whole actions against the simulated cloud", one_row=True),
    Layer("chaos", "blows at fixed moments"),
    Layer(
        "startup",
        "the real start-up script in namespaces and on real Debians, Ray and torchrun on three VMs",
        needs="Linux; root on Debian or Ubuntu, whose apt-get fetches Debian's systems; cc",
        spread=Spread.FILES,
    ),
    Layer(
        "browser",
        "the report's page in a real browser",
        needs="Chromium, or apt-get, which fetches Debian's without installing it",
        spread=Spread.FILES,
    ),
    Layer(
        "kubernetes",
        "a real Kubernetes and Kueue",
        needs="Go, and 8 minutes to build them once",
        spread=Spread.NONE,
    ),
    Layer(
        "image",
        "the Dockerfile, built and run",
        needs="root on Debian, or a container engine",
        spread=Spread.NONE,
    ),
    Layer(
        "provider",
        "whole runs with HashiCorp's own google provider, PROVIDER=FILE",
        needs=f"the google provider {mirror.VERSION}, the binary or HashiCorp's zip of it",
        again=real_provider.CHOSEN,
    ),
)

BY_NAME: Final = {it.name: it for it in LAYERS}


@dataclass
class Count:
    """What became of a layer's tests."""

    passed: int = 0  # how many passed
    failed: int = 0  # how many failed, or could not be set up or cleared away
    skipped: int = 0  # how many said that they can't run here
    left_out: int = 0  # how many are in the other part of the tests
    seconds: float = 0.0  # the time of all of them, one after the other


_ASKING: Final = f"""\
test-provider runs nothing without a google provider {mirror.VERSION} from outside. Give it the \
binary, or the zip
in which HashiCorp publishes it for this machine:

    make test-provider PROVIDER=/folder/{mirror.NAME}           # hours; QUICK=yes: half of one
    make test-provider PROVIDER=/folder/terraform-provider-google_{mirror.VERSION}_\
{mirror.platform_name()}.zip

`terraform init` in a copy of terraform/mig, where the network is, leaves the binary below
.terraform/providers; in the project's image it is below {given.IMAGE}.
"""


def of(path: Path) -> Layer | None:
    """The layer that a file or folder is in; whatever it is, with a provider from outside."""
    return BY_NAME["provider"] if real_provider.in_use() else _in_tree(path)


@functools.cache
def _in_tree(path: Path) -> Layer | None:
    return next((it for it in LAYERS if it.folder in (path, *path.parents)), None)


def table(counts: Mapping[str, Count], not_run: Mapping[str, str] | None = None) -> list[str]:
    """What was run, a line for each layer, and a line of sums.

    `not_run`: layers that were not started -> what they lack.
    """
    numbers = [
        (name, it.passed, it.failed, it.skipped, it.left_out, it.seconds)
        for name, it in counts.items()
    ]
    sums = tuple(map(sum, list(zip(*numbers, strict=True))[1:])) if numbers else (0,) * 5
    columns = "{:<12}{:>8}{:>8}{:>9}{:>10}{:>10}"
    head = columns.format("layer", "passed", "failed", "skipped", "left out", "seconds")
    rows = [(*row[:5], f"{row[5]:.0f}") for row in [*numbers, ("together", *sums)]]
    missing = [f"{name:<12} NOT RUN: it needs {it}" for name, it in (not_run or {}).items()]
    return [head, *(columns.format(*row) for row in rows[:-1]), *missing, columns.format(*rows[-1])]


def commands(
    wanted: Sequence[Layer], part: Part, workers: int, provider: str = "", *, short: bool = False
) -> list[list[str]]:
    """pytest's arguments, one list for each start; layers that are spread alike share a start.

    `part`: which of their tests; a layer that runs those of others again has one that is `short`.
    `provider`: the google provider from outside; "" for none, and the layer is not started.
    """
    selecting = {
        Part.QUICK: ["--quick", f"--durations={_SLOWEST}"],
        Part.REST: ["--rest", f"--durations={_SLOWEST}"],
        Part.ALL: [],
    }[part]
    found = []
    for spread in Spread:
        alike = [it for it in wanted if it.spread is spread]
        folders = [f"tests/{it.name}" for it in alike if not it.again]
        processes = ["-n", str(math.ceil(workers * _PER_PROCESSOR[part])), "--dist", spread.value]
        if spread is Spread.FILES:
            processes.append("--no-loadscope-reorder")
        spreading = [] if spread is Spread.NONE else processes
        # What is not spread has tests that need a machine for themselves, and a start for each.
        starts = [[folder] for folder in folders] if spread is Spread.NONE else [folders]
        found += [[*selecting, *spreading, *start] for start in starts if start]
    for layer in wanted:
        if layer.again and provider:
            spreading = ["-n", str(workers), "--dist", layer.spread.value]
            limit = f"--timeout={real_provider.TIMEOUT}"
            again = real_provider.SHORT if short else layer.again
            found.append([f"--provider={provider}", limit, *spreading, *again])
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
    return [BY_NAME[name]], Part.ALL


def run(
    name: str, workers: int, more: Iterable[str], provider: str = "", *, short: bool = False
) -> int:
    """Run layers, and say at the end what was run and for how long."""
    began, used = time.monotonic(), _used()
    counts: dict[str, Count] = {}
    code = 0
    wanted, part = chosen(name)
    starts = commands(wanted, part, workers, provider, short=short)
    not_run = {it.name: it.needs for it in wanted if it.again and not provider}
    if not starts:
        sys.stderr.write(_ASKING)
        return 2
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for number, start in enumerate(starts):
            report = Path(folder, f"{number}.json")
            argv = [sys.executable, "-m", "pytest", f"--counts={report}", *start, *more]
            # One that fails keeps no other from being run: a red run shows all that is wrong.
            before, since = time.monotonic(), _used()
            ended = subprocess.run(argv, cwd=TREE, check=False).returncode
            code = code or ended
            folders = ", ".join(it for it in start if it.startswith("tests/"))
            times.append(f"{folders}: {_times(time.monotonic() - before, _used() - since)}")
            if report.exists():
                document = json.loads(report.read_text(encoding="utf-8"))
                counts |= {layer: Count(**count) for layer, count in document.items()}
    if len(starts) > 1:
        sys.stdout.write("\n".join(["", *table(counts, not_run), *times]) + "\n")
    told = _times(time.monotonic() - began, _used() - used)
    sys.stdout.write(f"make's {name}: {told}, exit code {code}\n")
    return code


def _used() -> float:
    """The processor seconds of the machine so far.

    Those of children would be too few: many a process of a VM or cloud ends without being waited
    for by what started it.
    """
    stat = Path("/proc/stat")
    if not stat.exists():
        used = os.times()
        return used.children_user + used.children_system
    user, nice, system, _idle, _waiting, *interrupts = map(int, stat.read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _times(seconds: float, used: float) -> str:
    """How long something took; what leaves processors idle could have run beside something else."""
    return (
        f"{seconds:.0f} s, {100 * used / seconds / (os.cpu_count() or 1):.0f} % of the processors"
    )


def write(path: Path, counts: Mapping[str, Count]) -> None:
    """Keep counts for `run`."""
    document = {name: asdict(count) for name, count in counts.items()}
    path.write_text(json.dumps(document), encoding="utf-8")


def main() -> int:
    """What the Makefile calls."""
    parser = argparse.ArgumentParser(prog="python -m tests.layers", description=__doc__)
    parser.add_argument("name", choices=[*Part, *(it.name for it in LAYERS)])
    parser.add_argument("--workers", type=int, default=2, help="processors that share the tests")
    parser.add_argument("--provider", default="", help="the google provider for that layer")
    parser.add_argument("--short", action="store_true", help="half an hour of that layer")
    arguments, more = parser.parse_known_args()
    return run(arguments.name, arguments.workers, more, arguments.provider, short=arguments.short)


if __name__ == "__main__":
    sys.exit(main())
