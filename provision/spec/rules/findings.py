"""What a rule between settings is, what it gets, and what it finds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from provision.codes import Code
from provision.settings.candidates import ASKED_BY
from provision.settings.model import option_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.settings.choices import Way
    from provision.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem between settings, or one note."""

    field: str
    what: str  # what is wrong, as the predicate of the field's value: "is not in us-east1"
    why: str = ""  # the rule
    fix: str = ""  # what to write instead
    note: bool = False  # whether it is a note, which does not stop the run
    # whether it is a note from a dated list, which Google's own answer replaces
    guess: bool = False
    code: Code = Code.CONFLICTING_SETTINGS  # what it is about, for programs
    zones: tuple[str, ...] = ()  # zones that may do instead


class _UnknownKindError(Exception):
    """The kind of cluster decides, and its setting is bad."""


@dataclass(frozen=True)
class Case:
    """The settings that a rule checks."""

    settings: Settings  # all values; a field with an invalid value has its default
    # field -> the variable that set it, as the user wrote it
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # the fields with an invalid value, or whose default depends on one
    bad: frozenset[str] = frozenset()
    today: dt.date = field(default_factory=lambda: dt.datetime.now(tz=dt.UTC).date())

    @property
    def is_gke(self) -> bool:
        """Whether it is about a GKE cluster; a rule that asks is skipped if nobody knows."""
        self._require_kind()
        return self.settings.is_gke

    @property
    def is_ray(self) -> bool:
        """Whether it is about VMs with Ray; a rule that asks is skipped if nobody knows."""
        self._require_kind()
        return self.settings.is_ray

    @property
    def is_slurm(self) -> bool:
        """Whether it is about VMs with Slurm; a rule that asks is skipped if nobody knows."""
        self._require_kind()
        return self.settings.is_slurm

    def _require_kind(self) -> None:
        if "orchestrator_type" in self.bad:
            raise _UnknownKindError

    def asked(self, name: str) -> bool:
        """Whether the user set this field to a valid value."""
        return name in self.settings.model_fields_set and name not in self.bad

    def on(self, name: str) -> bool:
        """Whether the user set this field to a valid value other than no."""
        return self.asked(name) and getattr(self.settings, name) is not False

    def name(self, name: str) -> str:
        """The variable of a field, as the user wrote it if they did."""
        return self.names.get(name) or option_of(name) or name.upper()

    def by(self, way: Way) -> Case:
        """The case of another way of CAPACITY."""
        asking = {field: f"{one} in CAPACITY" for one, field in ASKED_BY.items()}
        names = MappingProxyType({**asking, **self.names})
        return replace(self, settings=self.settings.by(way), names=names)

    def value(self, name: str) -> Any:
        """The field's effective value."""
        return getattr(self.settings, name)


Check = Callable[[Case], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One rule between settings."""

    touches: tuple[str, ...]  # the fields that it compares; it is skipped if one of them is bad
    gke: bool | None  # whether it is for GKE clusters, or for all others; None for both
    check: Check

    def judge(self, case: Case) -> list[Finding]:
        """The findings of the rule."""
        if case.bad.intersection(self.touches):
            return []
        try:
            is_for = self.gke is None or self.gke is case.is_gke
            return list(self.check(case)) if is_for else []
        except _UnknownKindError:
            return []


class Rules(list[Rule]):
    """The rules of a module, in their order."""

    def on(self, *touches: str, gke: bool | None = None) -> Callable[[Check], Check]:
        """Make a rule of the function below; for the arguments, see `Rule`.

        A rule for GKE clusters is not for others: there it is enough to say that a setting has no
        effect.
        """

        def add(check: Check) -> Check:
            self.append(Rule(touches, gke, check))
            return check

        return add
