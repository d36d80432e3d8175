"""The whole of a smoke test: step by step, within its cost, and swept whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import requests

from smoke import google, program, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from smoke.costs import Prices
    from smoke.google import Google
    from smoke.program import Ended
    from smoke.steps import Place, Step

STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a smoke test to end: it removes what it has made first."""
CAPACITY: Final = (7, 75)
"""Exit codes by which the program says that Google has no machine to give: no fault of its own."""


@dataclass
class Outcome:
    """What became of a step."""

    step: Step
    seconds: float  # how long it took
    usd: float  # what it cost at most
    trouble: str  # what went wrong; "" for nothing
    capacity: bool = False  # whether that is a lack of machines at Google's


@dataclass
class Walk:
    """A smoke test on its way."""

    place: Place  # where it works
    prices: Prices
    limit: float  # the most that it may cost, in USD
    environ: Mapping[str, str]  # the program's, which leads to the proxy
    folder: Path  # takes what is said and the report
    google: Google  # what it asks Google itself
    tell: Callable[[str], None]  # gets a line for people
    outcomes: list[Outcome] = field(default_factory=list)  # what was done so far
    stopped: str = ""  # why it ended before its last step; "" when it did not
    # what is there of it after the sweep; a line each
    left: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)  # what could not be looked for
    _living: dict[str, Step] = field(default_factory=dict)
    _connections: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def spent(self) -> float:
        """What it has cost so far at most, in USD."""
        return sum(it.usd for it in self.outcomes)

    @property
    def done(self) -> bool:
        """Whether every step was done, and nothing is left."""
        sound = not any(it.trouble for it in self.outcomes)
        return sound and not (self.stopped or self.left or self.unlisted)

    def take(self, wanted: list[Step]) -> None:
        """Do the steps, and then remove whatever they have made; never raises for Ctrl-C."""
        try:
            self._take(wanted)
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        except (google.RefusedError, requests.RequestException, OSError) as error:
            self.stopped = str(error)
        finally:
            with _deaf(self.tell):
                self._sweep()

    def _take(self, wanted: list[Step]) -> None:
        for bucket in (self.place.state_bucket, self.place.data_bucket):
            self.google.make_bucket(bucket)
        skipped: set[str] = set()
        for step in wanted:
            if step.deployment in skipped:
                continue
            if self._over(step):
                return
            outcome = self._one(step)
            if outcome.trouble:
                # What is wrong with one deployment says little about the next: it is swept, and
                # the next one is tried.
                skipped.add(step.deployment)
                self._remove(step.deployment)

    def _over(self, step: Step) -> bool:
        """Whether a step, and the removal of all that there is then, could cost too much."""
        removal = steps.removal(step)
        most = self.prices.usd(step.billed, step.seconds)
        most += self.prices.usd(removal.billed, removal.seconds)
        if self.spent + most <= self.limit:
            return False
        self.stopped = (
            f"before {step.name}: it and its removal could cost {most:.2f} USD,"
            f" {self.spent:.2f} are spent, and COST_LIMIT is {self.limit:.2f}"
        )
        self.tell(f"Stopped {self.stopped}")
        return True

    def _one(self, step: Step) -> Outcome:
        """Do a step, and note what became of it, even when it is interrupted."""
        self.tell(f"{step.name} ...")
        if step.action == "Create":
            self._living[step.deployment] = step
        began = time.monotonic()
        outcome = Outcome(step, 0.0, 0.0, "interrupted")
        self.outcomes.append(outcome)
        try:
            ended = self._done(step)
            outcome.trouble = ended.trouble
            outcome.capacity = ended.code in CAPACITY
        finally:
            outcome.seconds = time.monotonic() - began
            outcome.usd = self.prices.usd(step.billed, outcome.seconds)
            said = outcome.trouble or "done"
            self.tell(f"  {said}; {outcome.seconds:.0f} s, at most {outcome.usd:.2f} USD")
        if step.action == "Destroy" and not outcome.trouble:
            self._living.pop(step.deployment, None)
        return outcome

    def _done(self, step: Step) -> Ended:
        match step.action:
            case steps.JOB:
                return self._beside(self.google.run_job, self._connections[step.deployment], step)
            case steps.PREEMPT:
                return self._beside(self.google.preempt, step.settings, step)
            case _:
                return self._run(step)

    def _run(self, step: Step) -> Ended:
        ended = program.run(step, self.environ, self.folder)
        older = len(ended.document.get("out_of_date", []))
        if step.action == "Create" and not ended.trouble and older != step.older:
            trouble = f"{older} VMs are of older settings, not {step.older}"
            ended = dataclasses.replace(ended, trouble=trouble)
        if found := ended.document.get("connection"):
            self._connections[step.deployment] = found
        return ended

    @staticmethod
    def _beside(do: Callable[[Mapping[str, Any], float], str], what: Any, step: Step) -> Ended:
        began = time.monotonic()
        trouble = do(what, step.seconds)
        return program.Ended(int(bool(trouble)), time.monotonic() - began, {}, trouble)

    def _sweep(self) -> None:
        """Remove every deployment that was made and the buckets, and list what is left."""
        for deployment in list(self._living):
            self._remove(deployment)
        if not self._living:
            # The state is what Destroy needs: with a deployment left, its bucket stays too.
            for bucket in (self.place.state_bucket, self.place.data_bucket):
                with contextlib.suppress(google.RefusedError, requests.RequestException):
                    self.google.remove_bucket(bucket)
        try:
            self.left, self.unlisted = self.google.left()
        except (requests.RequestException, OSError) as error:
            self.unlisted = [f"everything: {error}"]
        for line in self.left:
            self.tell(f"  LEFT: {line}")

    def _remove(self, deployment: str) -> None:
        if deployment in self._living:
            self._one(steps.removal(self._living[deployment]))


def most(wanted: list[Step], prices: Prices) -> float:
    """What steps cost at most, in USD: each with all of its time."""
    return sum(prices.usd(step.billed, step.seconds) for step in wanted)


def expected(wanted: list[Step], prices: Prices) -> float:
    """What steps cost where each takes a third of its time, in USD."""
    return most(wanted, prices) / 3


@contextlib.contextmanager
def _deaf(tell: Callable[[str], None]) -> Iterator[None]:
    """Finish what removes things, whatever is pressed meanwhile."""
    said = "Removing what was made; that is finished first."
    before = {it: signal.signal(it, lambda *_: tell(said)) for it in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
