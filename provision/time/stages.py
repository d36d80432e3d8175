"""The stages of a run: which are open, what they wait for, and that somebody hears of it.

A wait says what is new when it is new. Who says nothing for a minute is spoken for: a thread beats
once a second, whatever the run is at, so that a request that nobody answers and a Terraform that
says nothing are no silence either. That minute is of our own time, however fast the cloud's is.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from provision.documents.events import StageEvent, WaitingEvent, stamp
from provision.documents.timeline import OnInterrupt, Stage, StageName, StageState
from provision.errors import Interrupted, StillWaiting
from provision.time.clock import Clock
from provision.time.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from provision.documents.events import Event

SILENCE: Final = 55.0
"""Seconds of our own time without news after which a sign of life is given.

Whoever ends a step that is silent for a minute looks no oftener than once a second.
"""
_BEAT: Final = 1.0
_OURS: Final = frozenset({StageName.CONNECT, StageName.CHECKS, StageName.INIT, StageName.PLAN})
"""Stages in which this machine works, and the cloud only answers: they take time of ours."""


class Screen(Protocol):
    """Where stages are shown."""

    def happened(self, event: Event) -> None:
        """Show what has happened."""

    def refresh(self, stages: Sequence[WaitingEvent]) -> None:
        """Show how far the open stages are now; called once a second."""


class OpenStage:
    """A stage that goes on; made by `Stages.stage` and `Stages.begin`."""

    def __init__(self, stages: Stages, name: StageName, on_interrupt: OnInterrupt) -> None:
        self._stages = stages
        self._deadline: Deadline | None = None
        self.name = name
        self.on_interrupt = on_interrupt
        self.words = ""
        self.began = time.time()
        self.told = time.monotonic()
        self.clock = Clock() if name in _OURS else stages.clock
        self.start = self.clock.now()

    def news(self, words: str) -> None:
        """Say how far it is; the same words as before are no news."""
        if words != self.words:
            self.words = words
            self._stages.tell(self, is_news=True)

    def counts(self, words: str) -> None:
        """Set how far it is, for the next sign of life and for its end, but make no news of it."""
        self.words = words

    def deadline(self, seconds: float, poll: float) -> Deadline:
        """Make a deadline, which its signs of life name; the arguments are those of `Deadline`."""
        self._deadline = Deadline(seconds, poll, self._stages.clock)
        return self._deadline

    def event(self, extra: str, *, is_news: bool) -> WaitingEvent:
        """How far it is now."""
        deadline, passed = self._deadline, self.clock.since(self.start)
        return WaitingEvent(
            time=stamp(time.time()),
            stage=self.name,
            words="; ".join(filter(None, [self.words, extra])) or None,
            passed=round(deadline.passed if deadline else passed, 1),
            most=round(deadline.most, 1) if deadline else None,
            on_interrupt=self.on_interrupt,
            is_news=is_news,
        )

    def document(self, state: StageState) -> Stage:
        """The stage as it goes into the report."""
        is_open = state is StageState.RUNNING
        return Stage(
            name=self.name,
            state=state,
            began=stamp(self.began),
            ended=None if is_open else stamp(time.time()),
            seconds=round(self.clock.since(self.start), 1),
            words=self.words or None,
        )


class Stages:
    """The stages of a run.

    `beats`: whether a thread gives signs of life and refreshes the screen; `close` ends it.
    `looks`: gets, once a second, how far the first of the open stages is.
    `timeline`: All stages, in the order in which they began. `destroys`: Whether an interrupt makes
    the run destroy the cluster.
    """

    def __init__(
        self,
        clock: Clock,
        screen: Screen,
        *,
        beats: bool = False,
        looks: Callable[[WaitingEvent], None] = lambda _: None,
    ) -> None:
        self.clock = clock
        self.timeline: list[Stage] = []
        self.destroys = False
        self._screen = screen
        self._looks = looks
        self._open: list[OpenStage] = []
        self._waits: list[str] = []
        self._guard = threading.RLock()
        self._beats = beats
        self._heart: threading.Thread | None = None
        self._closed = threading.Event()
        self._start = self._told = time.monotonic()
        self._waited = 0.0
        # When the waiting for the cloud that goes on has begun, by its clock and by ours.
        self._since: tuple[float, float] | None = None

    @property
    def ahead(self) -> float:
        """By how many seconds the cloud's time is ahead of ours, for stages that wait for it."""
        if self._since is None:
            return self._waited
        cloud, ours = self._since
        return self._waited + self.clock.since(cloud) - (time.monotonic() - ours)

    @contextlib.contextmanager
    def stage(self, name: StageName, on_interrupt: OnInterrupt) -> Iterator[OpenStage]:
        """A stage, which ends as its block does: done, waiting, interrupted or failed."""
        opened = self.begin(name, on_interrupt)
        try:
            yield opened
        except Interrupted:
            self.end(opened, StageState.INTERRUPTED)
            raise
        except StillWaiting:
            self.end(opened, StageState.WAITING)
            raise
        except BaseException:
            self.end(opened, StageState.FAILED)
            raise
        self.end(opened, StageState.DONE)

    def begin(self, name: StageName, on_interrupt: OnInterrupt) -> OpenStage:
        """Begin a stage; whoever begins one ends it."""
        if self.destroys and on_interrupt is not OnInterrupt.LEAVES_REST:
            on_interrupt = OnInterrupt.DESTROYS
        opened = OpenStage(self, name, on_interrupt)
        with self._guard:
            self._open.append(opened)
            if self._since is None and opened.name not in _OURS:
                self._since = self.clock.now(), time.monotonic()
            document = opened.document(StageState.RUNNING)
            self.timeline.append(document)
        self._screen.happened(StageEvent(time=document.began, stage=document))
        if self._beats and self._heart is None:
            self._heart = threading.Thread(target=self._beat_on, daemon=True)
            self._heart.start()
        self.refresh()
        return opened

    def end(self, opened: OpenStage, state: StageState) -> None:
        """End a stage."""
        document = opened.document(state)
        with self._guard:
            self._open.remove(opened)
            if all(one.name in _OURS for one in self._open):
                self._waited, self._since = self.ahead, None
            began = [it.name is opened.name and it.ended is None for it in self.timeline]
            self.timeline[began.index(True)] = document
            self._told = time.monotonic()
        self.refresh()
        self._screen.happened(StageEvent(time=document.ended or document.began, stage=document))

    @contextlib.contextmanager
    def waits(self, words: str) -> Iterator[None]:
        """Name what is waited for inside of a stage, or between two, in signs of life."""
        with self._guard:
            self._waits.append(words)
        try:
            yield
        finally:
            with self._guard:
                self._waits.remove(words)

    def tell(self, opened: OpenStage, *, is_news: bool) -> None:
        """Show how far a stage is."""
        opened.told = time.monotonic()
        self._screen.happened(opened.event("" if is_news else self._extra(), is_news=is_news))

    def refresh(self) -> None:
        """Show how far all stages are, where that can be shown in place."""
        with self._guard:
            found = [one.event(self._extra(), is_news=False) for one in self._open]
        self._screen.refresh(found)

    def beat(self) -> None:
        """Refresh the screen, and give a sign of life if there was none for a while."""
        self.refresh()
        with self._guard:
            now, first = time.monotonic(), next(iter(self._open), None)
            last = max([self._told, *(one.told for one in self._open)])
            is_silent = now - last >= SILENCE
            self._told = now if is_silent else self._told
        if first is not None:
            self._looks(first.event("", is_news=False))
        if not is_silent:
            return
        # One for all that go on side by side: the first is the one that the others are a part of.
        if first is not None:
            self.tell(first, is_news=False)
        else:
            self._screen.happened(self._between(now))

    def close(self) -> None:
        """End the signs of life, and what an interrupt between two lines has left open."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()
        for opened in tuple(self._open):
            self.end(opened, StageState.INTERRUPTED)

    def _between(self, now: float) -> WaitingEvent:
        return WaitingEvent(
            time=stamp(time.time()),
            stage=None,
            words=self._extra() or None,
            passed=round(now - self._start + self.ahead, 1),
            on_interrupt=OnInterrupt.DESTROYS if self.destroys else OnInterrupt.KEEPS,
            is_news=False,
        )

    def _extra(self) -> str:
        with self._guard:
            return self._waits[-1] if self._waits else ""

    def _beat_on(self) -> None:
        while not self._closed.wait(_BEAT):
            self.beat()


class Sentences:
    """A screen that hands news on as sentences, each once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._last: str | None = None

    def happened(self, event: Event) -> None:
        """Hand on what is new."""
        if isinstance(event, WaitingEvent):
            self._say(event.words)
        elif isinstance(event, StageEvent):
            self._say(event.stage.words)

    def refresh(self, stages: Sequence[WaitingEvent]) -> None:
        """Nothing is shown in place."""

    def _say(self, words: str | None) -> None:
        if words and words != self._last:
            self._tell(words)
        self._last = words or self._last


@dataclass(frozen=True)
class Progress:
    """The clock and the progress output of a run."""

    clock: Clock  # the clock of Google Cloud
    # gets one sentence about what happens once; what goes on is a stage's
    tell: Callable[[str], None]
    # the stages of the run; None for stages that are heard of by `tell` alone
    given: Stages | None = field(default=None, repr=False)

    @functools.cached_property
    def stages(self) -> Stages:
        """The stages of the run."""
        return self.given or Stages(self.clock, Sentences(self.tell))

    def stage(
        self, name: StageName, on_interrupt: OnInterrupt = OnInterrupt.KEEPS
    ) -> AbstractContextManager[OpenStage]:
        """A stage of the run, which ends as its block does."""
        return self.stages.stage(name, on_interrupt)

    def waits(self, words: str) -> AbstractContextManager[None]:
        """Name what is waited for in signs of life, such as "an answer about my-cluster-mig"."""
        return self.stages.waits(words)

    def deadline(self, seconds: float, poll: float) -> Deadline:
        """Make a deadline for what is no stage of its own; `poll`: in seconds of cloud time."""
        return Deadline(seconds, poll, self.clock, self.waits)
