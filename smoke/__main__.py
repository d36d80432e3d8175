"""Try the program on Google itself, with real money: `make test-google PROJECT_ID=... ZONE=...`.

It makes the smallest clusters of each kind, moves one, runs a job, and removes everything. What
Google answered is recorded and asked of the simulated cloud again; the report says where the two
differ. Never part of CI: a maintainer starts it, and sees the cost first.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import secrets
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rehearsal import session
from rehearsal.cloud.server import Cloud
from smoke import differences, replay, report, steps, walk
from smoke.costs import Prices, UnknownPriceError
from smoke.google import Google
from smoke.recorder import Recorder
from smoke.steps import Place
from smoke.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from smoke.steps import Step

_USAGE: Final = 2
_FORWARDED: Final = "AIINFRA_FORWARDED_TO"
"""Tells the program that behind the proxy on this machine is Google (provision/endpoints.py)."""
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_COST_LIMIT: Final = 12.0
_RATE: Final = "0"


@dataclass(frozen=True)
class Options:
    """What is asked for on the command line."""

    place: Place
    limit: float  # COST_LIMIT, in USD
    only: frozenset[str]  # deployments to try; none for all
    agreed: bool  # whether nobody is to be asked
    rehearsed: bool  # whether the simulated cloud stands in for Google
    folder: Path  # takes the report


def options(argv: Sequence[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m smoke", description=__doc__)
    parser.add_argument("--project", required=True, help="the project that pays")
    parser.add_argument("--zone", required=True, help="a zone with T4 GPUs")
    parser.add_argument("--other-zone", default="", help="where to move; default: the next one")
    parser.add_argument("--cost-limit", type=float, default=_COST_LIMIT, help="USD; default 12")
    parser.add_argument("--only", choices=steps.DEPLOYMENTS, action="append", default=[])
    parser.add_argument("--yes", action="store_true", help="ask nobody")
    parser.add_argument("--rehearse", action="store_true", help="against the simulated cloud")
    parser.add_argument("--folder", type=Path, help="for the report; default: smoke-TIME here")
    given = parser.parse_args(argv)
    place = Place(
        project=given.project,
        zone=given.zone,
        other_zone=given.other_zone or _next_zone(given.zone),
        prefix=f"smk{secrets.token_hex(2)}",
    )
    folder = given.folder or Path(time.strftime("smoke-%Y%m%d-%H%M%S"))
    return Options(
        place, given.cost_limit, frozenset(given.only), given.yes, given.rehearse, folder
    )


def _next_zone(zone: str) -> str:
    """Another zone of the region; whether it has T4 GPUs Google says before anything is made."""
    region, _, letter = zone.rpartition("-")
    return f"{region}-{'a' if letter != 'a' else 'b'}"


def run(
    asked: Options,
    environ: Mapping[str, str],
    amiss: Callable[[str, str, int, bytes], tuple[int, bytes]] | None = None,
) -> int:
    """The whole of it; returns the exit code."""
    try:
        prices = Prices.of(asked.place.region)
    except UnknownPriceError as error:
        _tell(f"No smoke test without prices: {error}")
        return _USAGE
    wanted = steps.plan(asked.place, asked.only)
    if not _agreed(asked, wanted, prices):
        return _USAGE
    asked.folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(_simulated(asked, environ)) if asked.rehearsed else ""
        recorder = stack.enter_context(
            Recorder(asked.folder / "recording.jsonl", upstream=upstream, amiss=amiss)
        )
        own = _environment(asked, environ, recorder.base_url, upstream)
        done = Walk(
            place=asked.place,
            prices=prices,
            limit=asked.limit,
            environ=own,
            folder=asked.folder,
            google=Google(recorder.base_url, _token(own), asked.place),
            tell=_tell,
        )
        with _stoppable():
            done.take(wanted)
        exchanges = list(recorder.exchanges)
    report.write(asked.folder, done, None, len(exchanges))
    _tell(f"Asking the simulated cloud the same {len(exchanges)} requests ...")
    with tempfile.TemporaryDirectory(prefix="smoke-") as folder:
        pairs = replay.replay(exchanges, Path(folder), asked.place.project)
    found = differences.of(pairs)
    page = report.write(asked.folder, done, found, len(exchanges))
    _tell(f"{'Done' if done.done else 'NOT all well'}; {len(found)} differences: {page}")
    return 0 if done.done else 1


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let every signal that asks to end be as Ctrl-C."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {it: signal.signal(it, stop) for it in walk.STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _agreed(asked: Options, wanted: list[Step], prices: Prices) -> bool:
    """Tell what it will cost, and ask."""
    money = "simulated, costs nothing; on Google it would be" if asked.rehearsed else "real money:"
    _tell(
        f"{len(wanted)} steps in {asked.place.project}, {asked.place.zone} and"
        f" {asked.place.other_zone}, all named {asked.place.prefix}-...;"
        f" {money} some {walk.expected(wanted, prices):.2f} USD, at most"
        f" {min(asked.limit, walk.most(wanted, prices)):.2f} (list prices of {prices.date},"
        f" COST_LIMIT {asked.limit:.2f})."
    )
    if asked.agreed or asked.rehearsed:
        return True
    if not sys.stdin.isatty():
        _tell("Nobody can be asked here: --yes agrees beforehand.")
        return False
    sys.stderr.write("Go on? Type yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() == "yes"


@contextlib.contextmanager
def _simulated(asked: Options, environ: Mapping[str, str]) -> Iterator[str]:
    """A simulated cloud in Google's place, kept in the report's folder."""
    own = {**environ, "CLOUD_CLOCK_RATE": environ.get("CLOUD_CLOCK_RATE") or _RATE}
    with Cloud(database=asked.folder / session.DATABASE, environ=own) as cloud:
        yield cloud.base_url


def _environment(
    asked: Options, environ: Mapping[str, str], proxy: str, upstream: str
) -> dict[str, str]:
    """The program's environment: all that goes to Google goes by way of the proxy."""
    own = ("PROJECT_ID", "NAME_PREFIX", "ZONE", "REGION", "ACTION")
    kept = {name: value for name, value in environ.items() if name not in own}
    # Tokens come from Google by no recorder.
    endpoints = session.ENDPOINTS.items()
    leading = {name: proxy + path for name, path in endpoints if name != session.OF_TOKENS}
    if upstream:
        kept["CLOUD_CLOCK_RATE"] = environ.get("CLOUD_CLOCK_RATE") or _RATE
        folder = asked.folder.resolve() / "rehearsal"
        folder.mkdir(exist_ok=True)
        return {**session.environment(upstream, folder, kept), **leading}
    return {**kept, **leading, **session.no_proxy(environ), _FORWARDED: "googleapis.com"}


def _token(environ: Mapping[str, str]) -> Callable[[], str]:
    """Gives a valid access token: the one that is given outright, else that of the caller."""
    if given := environ.get("GOOGLE_OAUTH_ACCESS_TOKEN"):
        return lambda: given
    return functools.partial(_of_credentials, {})


def _of_credentials(kept: dict[str, object]) -> str:
    import google.auth  # noqa: PLC0415 - reads the environment when it is imported
    from google.auth.transport.requests import Request  # noqa: PLC0415 - with it

    if "credentials" not in kept:
        kept["credentials"], _ = google.auth.default(scopes=[_SCOPE])
    credentials: google.auth.credentials.Credentials = kept["credentials"]  # type: ignore[assignment]  # put there above
    if not credentials.valid:
        credentials.refresh(Request())
    return str(credentials.token)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(run(options(sys.argv[1:]), os.environ))
