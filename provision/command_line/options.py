"""The options: one row each, with the actions that they mean something to."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from provision.errors import Problem
from provision.files.archive import COPY_FOLDER
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Mapping


class Option(enum.StrEnum):
    """An option, by its name.

    Attributes:
        metavar: What its value is called; "" when it takes none.
        words: What it does, for the help.
        actions: The actions that it means something to.
    """

    metavar: str
    words: str
    actions: frozenset[Action]

    def __new__(cls, name: str, metavar: str, words: str, *actions: Action) -> Self:
        """Keep the row beside the name; no action stands for all of them."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.metavar = metavar
        member.words = words
        member.actions = frozenset(actions or Action)
        return member

    COPY = (
        *("--copy", "FOLDER", f"copy it to every VM; default: {COPY_FOLDER}"),
        *(Action.CREATE, Action.PLAN, Action.VALIDATE, Action.DEBUG),
    )
    YES = (
        *("--yes", "", "agree to losses, and to freeing the lock of a dead run"),
        *(Action.CREATE, Action.DESTROY),
    )
    REPLACE_VMS = (
        *("--replace-vms", "", "make VMs of an older template anew, a few at a time"),
        Action.CREATE,
    )
    OFFLINE = "--offline", "", "ask nothing of Google", Action.VALIDATE
    DETAILED_EXITCODE = (
        *("--detailed-exitcode", "", "exit as Terraform: 0 no changes, 2 changes, 1 any error"),
        Action.PLAN,
    )
    ENV_FILE = "--env-file", "FILE", "read settings from it; the environment is stronger"
    OUTPUT = "--output", "FORMAT", "text, or json: one document on stdout, also on failure"
    REHEARSE = "--rehearse", "SCENARIO", "do it against a simulated Google Cloud"
    HELP = "--help", "", "show this, as -h does; with an action, its own help"
    VERSION = "--version", "", "show the version"

    @property
    def needs_value(self) -> bool:
        """Whether nothing is meant without a value; --rehearse may stand alone."""
        return bool(self.metavar) and self is not Option.REHEARSE

    @property
    def form(self) -> str:
        """How it is written, with its value."""
        if self.needs_value:
            return f"{self} {self.metavar}"
        return f"{self}[={self.metavar}]" if self.metavar else str(self)


FORMATS = ("text", "json")
"""What --output takes."""


@dataclass(frozen=True)
class Options:
    """What a command line asks for.

    Attributes:
        action: The action, when the command line names one.
        given: Every option that was given, with its value; "" for none.
        about_settings: The help that is asked for is the one on the settings.
    """

    action: Action | None = None
    given: Mapping[Option, str] = field(default_factory=lambda: MappingProxyType({}))
    about_settings: bool = False

    @property
    def env_file(self) -> Path | None:
        """The file to read settings from."""
        return self._path(Option.ENV_FILE)

    @property
    def copy(self) -> Path | None:
        """The folder to copy to the VMs; None for the usual one, if it is there."""
        return self._path(Option.COPY)

    @property
    def as_json(self) -> bool:
        """Whether stdout is for one JSON document."""
        return self.given.get(Option.OUTPUT) == "json"

    @property
    def scenario(self) -> str | None:
        """What to practise in a rehearsal, "" for nothing special; None when it is none."""
        return self.given.get(Option.REHEARSE)

    def misfits(self, action: Action) -> list[Problem]:
        """The options that mean nothing to an action."""
        return [
            Problem(
                what=f"{option} means nothing to {action}",
                why=f"it is for {_listed([str(one) for one in Action if one in option.actions])}",
                fix=f"leave it out; {action} --help shows what there is",
            )
            for option in self.given
            if action not in option.actions
        ]

    def _path(self, option: Option) -> Path | None:
        text = self.given.get(option)
        return Path(text) if text else None


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
