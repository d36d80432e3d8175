"""What the rules across settings find, and what they look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provision.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One disagreement, or one thing worth knowing.

    Attributes:
        field: The field that it is about.
        what: What is wrong, as it follows the value that was given: "is not in us-east1".
        why: The rule.
        fix: What to write instead.
        note: Whether it stops nothing.
    """

    field: str
    what: str
    why: str = ""
    fix: str = ""
    note: bool = False


@dataclass(frozen=True)
class Case:
    """The settings that a rule judges.

    Attributes:
        settings: Every value; a field that is bad by itself has its default here.
        names: Field -> the variable that gave its value, as it was written.
        bad: Fields without a value that can be relied on.
    """

    settings: Settings
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    bad: frozenset[str] = frozenset()

    def asked(self, name: str) -> bool:
        """Whether somebody gave this field a value, and a good one."""
        return name in self.settings.model_fields_set and name not in self.bad

    def on(self, name: str) -> bool:
        """Whether somebody gave this field a value that asks for something."""
        return self.asked(name) and getattr(self.settings, name) is not False

    def name(self, name: str) -> str:
        """The variable of a field, as the user wrote it where they did."""
        return self.names.get(name, name.upper())

    def value(self, name: str) -> Any:
        """The field's effective value."""
        return getattr(self.settings, name)


@dataclass(frozen=True)
class Rule:
    """One rule across settings.

    Attributes:
        touches: The fields that it compares; while one of them is bad it has nothing to say.
        check: From the case to what it finds.
    """

    touches: tuple[str, ...]
    check: Callable[[Case], Iterator[Finding]]

    def judge(self, case: Case) -> list[Finding]:
        """What the rule finds; nothing while a field that it touches is bad."""
        return [] if case.bad.intersection(self.touches) else list(self.check(case))
