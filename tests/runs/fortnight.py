"""A cluster to which one thing after another happens, and what Status says after each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision.time.clock import VARIABLE
from rehearsal import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.runs.conftest import Ended, Rehearsal

HOUR: Final = 3600.0
_KEPT: Final = re.compile(r"^  (?:broken|unknown|waits|older|happened|machines|done|\.\.\.) ")
"""The parts of the screen that say something of an incident; each ends where another begins."""
_PART: Final = re.compile(r"^  \S")
_ALWAYS: Final = re.compile(r"\bmaintain|not heard of|GPU|\bdisk\b")
"""Lines of other parts that say something of one, too."""
_SCREEN: Final = re.compile(r"\S+ {3}(?:VM group|GKE cluster)")
_BESIDE: Final = re.compile(
    r"(?:Status np in|Credentials: |Rehearsal|This is a rehearsal|Request failed, retrying)"
)
_MASKS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z"), "<time>"),
    (re.compile(r"\b\d{8,}\b"), "<number>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), "<id>"),
    (re.compile(r"(\d+\s+h)\s+\d+\s+min\b"), r"\1"),
    (re.compile(r"\b\d+\s+(?:s|min)\b(?=\s+ago|$|,|;)", re.MULTILINE), "minutes"),
)


@dataclass
class Diary:
    """What somebody on call has seen, an entry for each incident."""

    rehearsal: Rehearsal
    names: re.Pattern[str]  # the names of machines, whose ends are drawn
    entries: list[str] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)

    def later(self, hours: float = 12) -> None:
        """Let time pass."""
        clock.skip(self.rehearsal.folder / clock.FILE, hours * HOUR)

    def at_once(self) -> None:
        """From here on all that is begun is done at once."""
        self._go(0)

    def as_google_does(self) -> None:
        """From here on everything takes the time that Google takes."""
        self._go(1)

    def _go(self, rate: float) -> None:
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.rate = rate
        self.rehearsal.environ[VARIABLE] = str(rate)

    def create(self, *options: str, **settings: str) -> Ended:
        """What Status advises most often."""
        self.later(1)
        self.at_once()
        self.rehearsal.settings |= settings
        created = self.rehearsal.run("Create", "--yes", *options)
        assert created.code == 0, created.said
        self.as_google_does()
        self.later()
        return created

    def scenario(self, *names: str) -> None:
        """What Google does from here on."""
        assert self.rehearsal.cloud is not None
        self.rehearsal.cloud.scenarios = frozenset(names)

    def look(self, incident: str) -> Ended:
        """Write down what Status says after an incident."""
        looked = self.rehearsal.run("Status", "--detailed-exitcode")
        self.entries += [f"=== {incident}", f"exit code {looked.code}", *self._read(looked.said)]
        return looked

    def text(self) -> str:
        """All entries."""
        return "\n".join(self.entries) + "\n"

    def _read(self, said: str) -> Sequence[str]:
        lines, kept, is_screen = [], True, False
        for line in said.splitlines():
            if line and not line.startswith(" "):
                is_screen = bool(_SCREEN.match(line))
                kept = not _BESIDE.match(line)
            elif is_screen and _PART.match(line):
                kept = bool(_KEPT.match(line))
            if kept or (is_screen and line.startswith("    ") and _ALWAYS.search(line)):
                lines.append(line.rstrip())
        return [*self._masked("\n".join(lines)).strip("\n").splitlines(), ""]

    def _masked(self, text: str) -> str:
        self.known(self.names.findall(text))
        text = self.names.sub(lambda it: self._known[it[0]], text)
        for pattern, stand_in in _MASKS:
            text = pattern.sub(stand_in, text)
        return text

    def known(self, names: Sequence[str]) -> None:
        """Give machines numbers, in the order of their names."""
        for name in sorted(names):
            if name not in self._known:
                self._known[name] = f"{name[: name.rindex('-')]}-<{len(self._known) + 1}>"


@dataclass(frozen=True)
class Incident:
    """Something that happens, and what ends it."""

    name: str
    happens: Callable[[Any], object]
    ends: Callable[[Any], object]
