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

    def __new__(cls, name: str, metavar: str, words: str, *actions: Action) -> Self:
        """Store the row with the name; no actions means all actions."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.metavar = metavar
        member.words = words
        member.actions = frozenset(actions or Action)
        return member

    COPY = (
        *("--copy", "FOLDER", f"send this folder; default: {COPY_FOLDER}"),
        *(Action.CREATE, Action.PLAN, Action.VALIDATE, Action.DEBUG, Action.RUN),
    )
    NAME = "--name", "NAME", "name the job", Action.RUN
    NODES = (
        "--nodes",
        "NUMBER",
        "on so many machines; of Test, nodes of a GKE pool",
        Action.RUN,
        Action.TEST,
    )
    GPUS = "--gpus", "NUMBER", "with so many GPUs of each; unset, all", Action.RUN
    ARRAY = "--array", "FIRST-LAST[%MOST]", "a task for each number, as 0-63%8", Action.RUN
    TIME = "--time", "TIME", "end it after this time, as 12h", Action.RUN
    ENV = "--env", "K=V", "set a variable; may come again (JOB_ENV)", Action.RUN
    SECRET = (
        "--secret",
        "NAME[=SECRET]",
        "a variable of Secret Manager's; may come again",
        Action.RUN,
    )
    MOUNT = (
        *("--mount", "BUCKET:PATH", "a bucket at /mnt/NAME for it alone; may come again"),
        Action.RUN,
    )
    IMAGE = "--image", "IMAGE", "run in this container image", Action.RUN
    MACHINE = "--machine", "TYPE", "on the pool of this machine type or GPU", Action.RUN
    QUEUE = "--queue", "QUEUE", "wait in this queue", Action.RUN
    PRIORITY = "--priority", "WORD", "go before jobs of less", Action.RUN
    RAY = "--ray", "", "GKE: run it on a Ray cluster of its own", Action.RUN
    SETUP = "--setup", "LINE", "install its packages so, once for its folder's", Action.RUN
    WAIT = "--wait", "TIME", "follow it so long while others are before it", Action.RUN
    RESTARTS = "--restarts", "NUMBER", "begin it again after failures", Action.RUN
    RESTART_ON = "--restart-on", "WORD", "its own failures: after none (lost), or any", Action.RUN
    AGAIN = "--again", "NAME", "this job once more, but for what you say here", Action.RUN
    CREATE = "--create", "", "make the cluster first, if it is not there", Action.RUN
    DESTROY_AFTER = (
        *("--destroy-after", "", "destroy the cluster at the end, whatever happened"),
        Action.RUN,
    )
    DETACH = "--detach", "", "do not follow it", Action.RUN
    POOL = "--pool", "NAME", "GKE: test this node pool alone", Action.TEST
    CORDON = "--cordon", "", "GKE: cordon the nodes that are at fault", Action.TEST
    FOLLOW = "--follow", "", "go on until the job is over", Action.LOGS
    RANK = (
        *("--rank", "RANK", "that of the job's machine; default: 0; of Logs, or all"),
        *(Action.LOGS, Action.FETCH, Action.SSH),
    )
    TAIL = "--tail", "LINES", "the last lines of what it has said so far", Action.LOGS
    ALL = "--all", "", "cancel all jobs of Run that are not over", Action.CANCEL
    FORWARD = "--forward", "PORT", "bring this port of the VM here, as for TensorBoard", Action.SSH
    CONFIG = "--config", "FILE", "print all VMs for ~/.ssh/config, or write that FILE", Action.SSH
    YES = (
        *("--yes", "", "agree to costs, losses, freeing a dead run's lock"),
        *(Action.CREATE, Action.DESTROY, Action.RUN, Action.CANCEL, Action.FETCH, Action.BAKE),
    )
    BREAK_LOCK = (
        *("--break-lock", "ID", "release the lock with this ID, which a dead run left"),
        *(Action.CREATE, Action.DESTROY, Action.RUN, Action.BAKE),
    )
    REPLACE_VMS = (
        *("--replace-vms", "", "replace VMs that are older than the settings"),
        Action.CREATE,
    )
    FULL = (
        *("--full", "", "show all: Terraform's text, each VM, Debug's secrets"),
        *(Action.CREATE, Action.DESTROY, Action.PLAN, Action.STATUS, Action.DEBUG, Action.BAKE),
    )
    WATCH = (
        *("--watch", "", "look again and again, until nothing is pending"),
        Action.STATUS,
    )
    OFFLINE = "--offline", "", "do not contact Google", Action.VALIDATE, Action.OFFERS
    ROLE = (
        *("--role", "", "print a custom role with the permissions for this env.list"),
        *(Action.VALIDATE, Action.PLAN, Action.JOBS),
    )
    REPORT = (
        *("--report", "FILE", "write the result as one HTML page, with a drawing"),
        *(Action.CREATE, Action.PLAN),
    )
    DETAILED_EXITCODE = (
        *("--detailed-exitcode", "", "exit with 2 if there are changes, or faults; 1 for errors"),
        *(Action.PLAN, Action.STATUS),
    )
    ENV_FILE = "--env-file", "FILE", "settings' file, else ./env.list; the environment wins"
    OUTPUT = (
        *("--output", "FORMAT"),
        "text, json (one document), or ndjson (events too)",
    )
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
