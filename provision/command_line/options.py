"""The options: one row for each, with the actions that support it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from provision.codes import Code
from provision.documents.events import Output
from provision.errors import Problem
from provision.files import COPY_FOLDER
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Mapping


def wrong(what: str, why: str = "", fix: str = "") -> Problem:
    """A problem of the command line."""
    return Problem(code=Code.INVALID_COMMAND_LINE, what=what, why=why, fix=fix)


class Option(enum.StrEnum):
    """An option, by its name."""

    metavar: str  # the name of its value in the help; "" if it takes none
    words: str  # what it does, for the help
    actions: frozenset[Action]

    def __new__(cls, name: str, metavar: str, words: str, actions: str = "") -> Self:
        """Store the row with the name; no actions means all actions."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.metavar = metavar
        member.words = words
        member.actions = frozenset(map(Action, actions.split()) if actions else Action)
        return member

    COPY = (
        *("--copy", "FOLDER", f"send this folder; default: {COPY_FOLDER}"),
        "Create Plan Validate Debug Run",
    )
    NAME = "--name", "NAME", "name the job", "Run"
    NODES = "--nodes", "NUMBER", "on so many machines; of Test, nodes of a GKE pool", "Run Test"
    GPUS = "--gpus", "NUMBER", "with so many GPUs of each; unset, all", "Run"
    ARRAY = "--array", "FIRST-LAST[%MOST]", "a task for each number, as 0-63%8", "Run"
    TIME = "--time", "TIME", "end it after this time, as 12h", "Run"
    ENV = "--env", "K=V", "set a variable; may come again (JOB_ENV)", "Run"
    SECRET = "--secret", "NAME[=SECRET]", "a variable of Secret Manager's; may come again", "Run"
    MOUNT = "--mount", "BUCKET:PATH", "a bucket at /mnt/NAME for it alone; may come again", "Run"
    IMAGE = "--image", "IMAGE", "run in this container image", "Run"
    MACHINE = "--machine", "TYPE", "on the pool of this machine type or GPU", "Run"
    QUEUE = "--queue", "QUEUE", "wait in this queue", "Run"
    PRIORITY = "--priority", "WORD", "go before jobs of less", "Run"
    RAY = "--ray", "", "GKE: run it on a Ray cluster of its own", "Run"
    SETUP = "--setup", "LINE", "install its packages so, once for its folder's", "Run"
    WAIT = "--wait", "TIME", "follow it so long while others are before it", "Run"
    RESTARTS = "--restarts", "NUMBER", "begin it again after failures", "Run"
    RESTART_ON = "--restart-on", "WORD", "its own failures: after none (lost), or any", "Run"
    AGAIN = "--again", "NAME", "this job once more, but for what you say here", "Run"
    CREATE = "--create", "", "make the cluster first, if it is not there", "Run"
    DESTROY_AFTER = (
        *("--destroy-after", "", "destroy the cluster at the end, whatever happened"),
        "Run",
    )
    DETACH = "--detach", "", "do not follow it", "Run"
    POOL = "--pool", "NAME", "GKE: test this node pool alone", "Test"
    CORDON = "--cordon", "", "GKE: cordon the nodes that are at fault", "Test"
    FOLLOW = "--follow", "", "go on until the job is over", "Logs"
    RANK = (
        *("--rank", "RANK", "that of the job's machine; default: 0; of Logs, or all"),
        "Logs Fetch Ssh",
    )
    TAIL = "--tail", "LINES", "the last lines of what it has said so far", "Logs"
    ALL = "--all", "", "cancel all jobs of Run that are not over", "Cancel"
    FORWARD = "--forward", "PORT", "bring this port of the VM here, as for TensorBoard", "Ssh"
    CONFIG = "--config", "FILE", "print all VMs for ~/.ssh/config, or write that FILE", "Ssh"
    YES = (
        *("--yes", "", "agree to costs, losses, freeing a dead run's lock"),
        "Create Destroy Run Cancel Fetch Bake",
    )
    BREAK_LOCK = (
        *("--break-lock", "ID", "release the lock with this ID, which a dead run left"),
        "Create Destroy Run Bake",
    )
    REPLACE_VMS = "--replace-vms", "", "replace VMs that are older than the settings", "Create"
    FULL = (
        *("--full", "", "show all: Terraform's text, each VM, Debug's secrets"),
        "Create Destroy Plan Status Debug Bake",
    )
    WATCH = "--watch", "", "look again and again, until nothing is pending", "Status"
    OFFLINE = "--offline", "", "do not contact Google", "Validate Offers"
    ROLE = (
        *("--role", "", "print a custom role with the permissions for this env.list"),
        "Validate Plan Jobs",
    )
    REPORT = "--report", "FILE", "write the result as one HTML page, with a drawing", "Create Plan"
    DETAILED_EXITCODE = (
        *("--detailed-exitcode", "", "exit with 2 if there are changes, or faults; 1 for errors"),
        "Plan Status",
    )
    ENV_FILE = "--env-file", "FILE", "settings' file, else ./env.list; the environment wins"
    OUTPUT = "--output", "FORMAT", "text, json (one document), or ndjson (events too)"
    REHEARSE = "--rehearse", "SCENARIO", "run against a simulated Google Cloud"
    HELP = "--help", "", "show this, as -h does; with an action, its own help"
    VERSION = "--version", "", "show the version"

    @property
    def needs_value(self) -> bool:
        """Whether it needs a value; that of two options is optional."""
        return bool(self.metavar) and self not in {Option.REHEARSE, Option.CONFIG}

    @property
    def form(self) -> str:
        """How to write it, with its value."""
        if self.needs_value:
            return f"{self} {self.metavar}"
        return f"{self}[={self.metavar}]" if self.metavar else str(self)


FORMATS = tuple(str(one) for one in Output)
"""The values of --output."""

OF_A_JOB = frozenset(
    {
        *(Option.NAME, Option.NODES, Option.GPUS, Option.ARRAY, Option.TIME),
        *(Option.SETUP, Option.WAIT, Option.RESTARTS, Option.RESTART_ON),
        *(Option.IMAGE, Option.MACHINE, Option.QUEUE, Option.PRIORITY),
    }
)
"""The options that JOB_OPTIONS may have."""
_ALSO_SETTINGS = frozenset({Option.POOL, Option.CORDON, Option.RANK, Option.TAIL, Option.FORWARD})


@dataclass(frozen=True)
class Options:
    """The options on a command line."""

    action: Action | None = None  # the action; None if the command line has none
    # the options, with their values, of one that came again the last; "" for none
    given: Mapping[Option, str] = field(default_factory=lambda: MappingProxyType({}))
    job: str = ""  # the job, VM or image that is named behind an action about one; "" for none
    # the jobs behind that one; of Fetch, path and destination
    others: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # what stands behind `--`
    # the variables of the job
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # the secrets of the job: variable -> what names the secret, "" for the variable's own name
    secrets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mounts: tuple[str, ...] = ()  # the buckets that are mounted for it, as they are written
    # what --help is about beside an action: "settings", or a name to look up; "" for nothing
    topic: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """What the command line says in place of settings: ACTION, and options by their names."""
        found = {
            str(option): text or "yes"
            for option, text in self.given.items()
            if option in OF_A_JOB | _ALSO_SETTINGS
        }
        return {"ACTION": str(self.action), **found} if self.action else found

    @property
    def env_file(self) -> Path | None:
        """The file to read settings from; None for none."""
        return self._path(Option.ENV_FILE)

    @property
    def copy(self) -> Path | None:
        """The folder to copy to the VMs; None for the default one, if it exists."""
        return self._path(Option.COPY)

    @property
    def report(self) -> Path | None:
        """The file to write the report's page to; None for none."""
        return self._path(Option.REPORT)

    @property
    def output(self) -> Output:
        """What to write to stdout; text where that is not a format."""
        text = self.given.get(Option.OUTPUT)
        return Output(text) if text in FORMATS else Output.TEXT

    @property
    def scenario(self) -> str | None:
        """The scenario of a rehearsal, "" for none; None if this is not a rehearsal."""
        return self.given.get(Option.REHEARSE)

    def misfits(self, action: Action) -> list[Problem]:
        """The problems for options that an action does not support."""
        return [
            wrong(
                f"{action} does not support {option}",
                f"it is for {_listed([str(one) for one in Action if one in option.actions])}",
                f"remove it; {action} --help shows the options of {action}",
            )
            for option in self.given
            if action not in option.actions
        ]

    def _path(self, option: Option) -> Path | None:
        text = self.given.get(option)
        return Path(text) if text else None


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
