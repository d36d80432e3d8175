"""What is done to a run, and when: cases that can be drawn, written down and done again."""

from __future__ import annotations

import enum
import random
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rehearsal.cloud.wire import Request
from tests.chaos.processes import Role


class Blow(enum.StrEnum):
    """What hits a run."""

    KILL_TOOL = "kill-tool"
    KILL_TERRAFORM = "kill-terraform"
    KILL_PLUGIN = "kill-plugin"
    KILL_ALL = "kill-all"
    SIGINT = "SIGINT"
    SIGTERM = "SIGTERM"
    SIGINT_TWICE = "SIGINT-twice"
    SIGTERM_TWICE = "SIGTERM-twice"
    KILL_STALE = "kill-stale"
    LOST_ANSWER = "lost-answer"
    OUTAGE = "outage"
    SLOW_DELETES = "slow-deletes"
    SECOND_CREATE = "second-Create"
    SECOND_DESTROY = "second-Destroy"
    SECOND_MOVE = "second-Move"

    @property
    def fault(self) -> str:
        """What goes wrong from its moment on between the run and the cloud; "" for nothing."""
        return _FAULTS.get(self, "")

    @property
    def second(self) -> str:
        """What another machine does at its moment; "" for nothing."""
        return self.value.partition("second-")[2]

    @property
    def signum(self) -> signal.Signals:
        """The signal that is sent."""
        name = self.value.removesuffix("-twice")
        return signal.SIGKILL if name.startswith("kill-") else signal.Signals[name]

    @property
    def roles(self) -> frozenset[Role]:
        """Whom it hits."""
        if self.fault or self.second:
            return frozenset()
        return _TARGETS.get(self, frozenset({Role.TOOL}))

    @property
    def is_repeated(self) -> bool:
        """Whether a second signal follows the first."""
        return self in (Blow.SIGINT_TWICE, Blow.SIGTERM_TWICE)

    @property
    def codes(self) -> frozenset[int]:
        """How the tool may end; -9 is a process that SIGKILL has ended."""
        return _CODES[self]


_TARGETS: Final = {
    Blow.KILL_TERRAFORM: frozenset({Role.TERRAFORM}),
    Blow.KILL_PLUGIN: frozenset({Role.PLUGIN}),
    Blow.KILL_ALL: frozenset(Role),
    Blow.KILL_STALE: frozenset(Role),
}
_FAULTS: Final = {
    Blow.LOST_ANSWER: "* **: lose times=1",
    Blow.OUTAGE: "* **: refuse 503 for=3",
    Blow.SLOW_DELETES: "DELETE **: delay 0.3",
}
LOST_STATE: Final = "POST|PUT /upload/storage/**/default.tfstate: forget after=1"
"""With this, a run that is killed leaves a state that is older than the world.

The first write is the empty state of a new deployment, without which nothing begins.
"""
NOTHING_MADE: Final = 4
"""The exit code that says so."""
ASKED: Final = 2
"""Its own where a run wants a word first."""
LOCKED: Final = 5
# As the command line has them; what a run says with 0, 4 or 5 is held against the cloud.
_HONEST: Final = frozenset({0, NOTHING_MADE, LOCKED, 6, 7, 8})
_CODES: Final = {
    Blow.KILL_TOOL: frozenset({-9}),
    Blow.KILL_ALL: frozenset({-9}),
    Blow.KILL_TERRAFORM: frozenset({6}),
    # A plugin may have done all that it was needed for.
    Blow.KILL_PLUGIN: frozenset({0, 6}),
    Blow.SIGINT: frozenset({130}),
    Blow.SIGINT_TWICE: frozenset({130}),
    Blow.SIGTERM: frozenset({143}),
    Blow.SIGTERM_TWICE: frozenset({143}),
    Blow.KILL_STALE: frozenset({-9}),
    Blow.LOST_ANSWER: _HONEST,
    Blow.OUTAGE: _HONEST,
    Blow.SLOW_DELETES: frozenset({0}),
    Blow.SECOND_CREATE: _HONEST,
    Blow.SECOND_DESTROY: _HONEST,
    Blow.SECOND_MOVE: _HONEST,
}


class Trouble(enum.StrEnum):
    """What comes between the blow and the run that has to mend it."""

    NONE = "none"
    LOST_RECORD = "lost-record"
    SECOND_STATE = "second-state"


_HEAD: Final = 500
"""Bytes of an upload in which its name is."""

HERE: Final = "us-central1-a"
ZONES: Final = {
    "Create": HERE,
    "Destroy": HERE,
    "Change": HERE,
    "Move": "us-central1-f",
    "MoveFar": "europe-west4-a",
    "GoOn": "us-central1-f",
}
"""What is hit -> where it is.

A move is a Create in another zone, and perhaps region; a change one with `CHANGED` under running
VMs, and whoever mends it goes back to the settings of before. `GoOn` is a Create with two zones, of
which the first has no machines.
"""
CHANGED: Final = {"SERVICE_ACCOUNT": "default", "STARTUP_COMMAND": "date"}
"""Another template and account: VMs hold both of before."""
ACTIONS: Final = tuple(ZONES)
THEN: Final = ("Create", "Destroy")
NETWORKS: Final = ("default_network", "new_network", "existing")
# CLOUD_CLOCK_RATE -> how often it is drawn. 0: every operation is done at once. Else operations
# are waited for, and end after the blow; with the slowest, after the next run has begun.
RATES: Final = {"0": 6, "0.005": 3, "0.1": 1}
_CASE: Final = re.compile(
    r"(?P<action>\w+)/(?P<network>\w+)/(?P<blow>[\w-]+)@(?P<moment>[^/]+)/(?P<rate>[\d.]+)"
    r"/then-(?P<then>\w+)(?:/with-(?P<trouble>[\w-]+))?"
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What runs undisturbed, until something is done to it."""

    action: str  # "Create" or "GoOn", or "Destroy", "Change", "Move" or "MoveFar" of what is there
    network: str
    rate: str  # CLOUD_CLOCK_RATE


@dataclass(frozen=True)
class Case:
    """One blow at one moment of a scene, and what is run afterwards."""

    scene: Scene
    blow: Blow
    # "37": the cloud's 37th request; "POST:networks": the first such request; the first from there
    # on at which the target is there
    moment: str
    then: str  # the action that has to mend it
    trouble: Trouble = Trouble.NONE  # what makes that harder

    def __str__(self) -> str:
        scene = self.scene
        trouble = "" if self.trouble is Trouble.NONE else f"/with-{self.trouble}"
        return (
            f"{scene.action}/{scene.network}/{self.blow}@{self.moment}/{scene.rate}"
            f"/then-{self.then}{trouble}"
        )

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read what `str` writes.

        Raises:
            ValueError: It is none.
        """
        match = _CASE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no case")
        scene = Scene(action=match["action"], network=match["network"], rate=match["rate"])
        trouble = Trouble(match["trouble"] or "none")
        return cls(scene, Blow(match["blow"]), match["moment"], match["then"], trouble)

    def is_due(self, number: int, request: Request) -> bool:
        """Whether the moment has come with this request, the number-th."""
        method, colon, part = self.moment.partition(":")
        if not colon:
            return number >= int(self.moment)
        return request.method == method and part in _subject(request)


def _subject(request: Request) -> str:
    """What a request is about; an upload says only in its query or body what it writes."""
    if not request.path.startswith("/upload/"):
        return request.path
    return f"{request.path} {request.query.get('name')} {request.body[:_HEAD]!r}"


def draw(
    dice: random.Random,
    profile: Callable[[Scene], Sequence[frozenset[Role]]],
    actions: Sequence[str] = ACTIONS,
) -> Case:
    """Draw a case; any moment at which its target is there is as likely as any other.

    `profile`: gives for each request of an undisturbed scene who was alive.
    """
    (rate,) = dice.choices(list(RATES), list(RATES.values()))
    scene = Scene(action=dice.choice(actions), network=dice.choice(NETWORKS), rate=rate)
    blow = dice.choice(list(Blow))
    present = [
        number
        for number, alive in enumerate(profile(scene), start=1)
        if blow in (Blow.KILL_ALL, Blow.KILL_STALE) or blow.roles <= alive
    ]
    # Half of the cases have no more trouble than the blow.
    (trouble,) = dice.choices(list(Trouble), [2, 1, 1])
    return Case(scene, blow, str(dice.choice(present)), dice.choice(THEN), trouble)
