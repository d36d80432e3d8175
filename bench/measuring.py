"""What the measurements share: running, timing, tables."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from rehearsal import session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ENTRYPOINT = Path(__file__).parents[1] / "entrypoint.py"


def timed(call: Callable[[], object]) -> float:
    """How many seconds a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def worked(call: Callable[[], object]) -> tuple[float, float]:
    """How many seconds a call takes, and how many of processor time the programs that it starts.

    What else runs on the machine makes a call take longer, but hardly work more.
    """
    before = _processor_time()
    seconds = timed(call)
    return seconds, _processor_time() - before


def _processor_time() -> float:
    """Seconds that all programs have worked that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(argv: Sequence[str], environ: dict[str, str], cwd: Path | None = None) -> None:
    """Run a command that must succeed; what it says is shown only when it does not."""
    done = subprocess.run(
        argv,
        env=environ,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.buffer.write(done.stderr)
        raise SystemExit(f"{argv} ended with {done.returncode}")


def row(name: str, times: Sequence[float]) -> str:
    """A row of a table: least, median and most."""
    low, middle, high = min(times), statistics.median(times), max(times)
    return f"| {name} | {low:.2f} | {middle:.2f} | {high:.2f} |"


def compared(
    names: tuple[str, str], calls: tuple[Callable[[], object], Callable[[], object]], runs: int
) -> list[str]:
    """Time two calls in turn, A B A B; the rows of a table, the ratio B to A included."""
    times = [(timed(calls[0]), timed(calls[1])) for _ in range(runs)]
    first, second = [a for a, _ in times], [b for _, b in times]
    return [
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        row(names[0], first),
        row(names[1], second),
        row("ratio, pair by pair", [b / a for a, b in times]),
    ]


class Program:
    """The program in an environment that leads to a simulated cloud."""

    def __init__(self, folder: Path, base_url: str, environ: dict[str, str]) -> None:
        self.environ = session.environment(base_url, folder, environ)

    def values(self, prefix: str, **settings: str) -> dict[str, str]:
        """Settings; VMs' image is named, as the search for a default one is no part of anything."""
        image = {"IMAGE_FAMILY_NAME": "common-cu129-ubuntu-2404-nvidia-580"}
        return {
            "PROJECT_ID": "my-project",
            "NAME_PREFIX": prefix,
            "ZONE": "us-central1-a",
            **({} if settings.get("ORCHESTRATOR_TYPE") == "gke" else image),
            # No project of the rehearsal may have a thousand machines.
            "SKIP_CHECKS": "quota",
            **settings,
        }

    def run(self, *arguments: str, prefix: str = "np", **settings: str) -> None:
        """Run it to its end, which must be a good one."""
        values = self.environ | self.values(prefix, **settings)
        run([sys.executable, str(ENTRYPOINT), *arguments], values)

    def first_line(self, *arguments: str, prefix: str = "np") -> float:
        """How many seconds it takes to its first line; it is then waited for to its end."""
        begin = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, str(ENTRYPOINT), *arguments],
            env=self.environ | self.values(prefix),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            said = cast("IO[bytes]", process.stderr)
            said.readline()
            seconds = time.perf_counter() - begin
            said.read()
        return seconds
