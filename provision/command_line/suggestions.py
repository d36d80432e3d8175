"""Suggestions for unknown options and actions."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.command_line.options import Option, wrong
from provision.settings import masking, parsing
from provision.settings.choices import ACTIONS_BY_OTHER_NAMES, Action, asking_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.errors import Problem

_ACTIONS: Final = {str(action).lower(): action for action in Action}
_ONE_OF_THEM: Final = f"one of {', '.join(Action)}"
# Option of another program (Terraform, gcloud, kubectl, sbatch, SkyPilot), without dashes -> ours.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("format", "json", "o", "out"), "--output json"),
    "f": "--env-file FILE, --follow, or --yes",
    "file": "--env-file FILE",
    **dict.fromkeys(("approve", "assume-yes", "auto-approve", "force", "y"), "--yes"),
    **dict.fromkeys(("mock", "simulate"), "--rehearse"),
    "action": "the action alone, as in: Create --yes",
    "follow": "Logs NAME --follow",
    **dict.fromkeys(("lines", "n"), "Logs NAME --tail LINES"),
    **dict.fromkeys(("nnodes", "num-nodes", "node-count", "N"), "--nodes NUMBER"),
    **dict.fromkeys(("job-name", "J"), "--name NAME"),
    "container-image": "--image IMAGE",
    "requeue": "--restarts NUMBER",
    "detach-run": "--detach",
    "down": "Destroy, or Run --destroy-after",
    "idle-minutes-to-autostop": "IDLE_TIMEOUT=30m in the env.list",
    "use-spot": "ENABLE_SPOT=yes in the env.list",
    "workdir": "--copy FOLDER",
    **dict.fromkeys(("gpu", "gpus-per-node", "gpus-per-task", "gres"), "--gpus NUMBER"),
    "command": "Run -- COMMAND",
    "v": "--full or --version, or docker's -v, which stands before the image's name",
    **dict.fromkeys(("set", "var"), "NAME=value in the env.list"),
}
_WITH_VALUE: Final = frozenset(
    {
        *("command", "f", "file", "format", "lines", "n", "nnodes", "node-count", "num-nodes", "o"),
        *("out", "set", "v", "var", "gpu", "gpus-per-node", "gpus-per-task", "gres", "N", "J"),
        *("job-name", "container-image", "idle-minutes-to-autostop", "workdir"),
    }
)
_DOCKERS: Final = frozenset({"e", "env", "i", "it", "mount", "rm", "t", "ti", "volume"})
_DOCKERS_WITH_VALUE: Final = frozenset({"e", "env", "mount", "volume"})
# Kind of cluster and machines on the predecessor's command line -> the settings that say so here;
# "" where none need.
_KINDS_OF_PREDECESSOR: Final[Mapping[str, str]] = {
    **dict.fromkeys(("mig", "mig-cos", "mig-with-container"), ""),
    **dict.fromkeys(("gke", "gke-beta"), asking_for("gke")),
    "slurm": asking_for("slurm"),
}
_MACHINES_OF_PREDECESSOR: Final[Mapping[str, str]] = {
    "a2": "VM_TYPE=a2-highgpu-1g",
    "a3": "VM_TYPE=a3-highgpu-8g",
    "a3-mega": "VM_TYPE=a3-megagpu-8g",
}
# --online must not be taken for --offline: their similarity is 0.77.
_ALIKE: Final = 0.78
_LONGEST: Final = 64
_LONGEST_COMMAND: Final = 200  # characters of one that is said whole


@dataclass(frozen=True)
class UnknownOption:
    """An unknown option."""

    problem: Problem
    has_value: bool | None  # whether the argument after it is its value; None if that is not known

    def takes(self, argument: str) -> bool:
        """Whether the argument after it is its value, and not a problem of its own."""
        if argument.startswith("-") or action(argument) or self.has_value is False:
            return False
        return bool(self.has_value) or _meant(argument) is None


def action(word: str) -> Action | None:
    """The action with a name, in upper or lower case; None if there is none."""
    return _ACTIONS.get(word.lower())


def shown(word: str) -> str:
    """An argument, quoted, shortened and masked for a message."""
    return parsing.shorten(masking.mask(word))


def of_option(name: str) -> UnknownOption:
    """The problem of an unknown option.

    `name`: the option with its dashes, without its value, which may be a secret.
    """
    bare = name.lstrip("-")
    bare = bare if bare in _OTHER_NAMES else bare.lower()
    fix, has_value = _fix_of_option(bare)
    return UnknownOption(
        wrong(f"{shown(name)} is not an option", fix=fix),
        has_value,
    )


def of_action(word: str) -> Problem:
    """The problem of an unknown action."""
    meant = _meant(word)
    return wrong(
        f"{shown(word)} is not an action",
        _ONE_OF_THEM,
        f"did you mean {meant}?" if meant else "--help explains the actions",
    )


def of_topic(word: str, known: Iterable[str]) -> Problem:
    """The problem of what --help has nothing about; `known`: what it has something about."""
    names = {name.lower(): name for name in (*map(str, Action), *known)}
    close = difflib.get_close_matches(word.lower()[:_LONGEST], names, n=1, cutoff=_ALIKE)
    meant = names[close[0]] if close else _meant(word)
    return wrong(
        f"--help has nothing about {shown(word)}",
        "it knows actions, settings, the codes of problems, and exit codes",
        f"did you mean {meant}?"
        if meant
        else "--help explains the actions, --help settings all settings",
    )


def of_stray(word: str) -> Problem | None:
    """The problem of a word that was not meant as an action; None if it may have been."""
    name, equals, _ = word.partition("=")
    if equals:
        return wrong(
            f"{shown(name)} is set on the command line",
            "settings are read from the env.list and the environment",
            "write it to the env.list; with docker, use -e NAME=value before the image's name",
        )
    if re.search(r"[./\\]", word):
        return wrong(
            f"{shown(word)} is not an action; it looks like a file",
            _ONE_OF_THEM,
            f"did you mean --env-file {shown(word)}?",
        )
    meant = {
        "completion": "completion bash, zsh, fish or powershell",
        "settings": "--help settings",
        "version": "--version",
    }
    if word.lower() in meant:
        return wrong(
            f"{shown(word)} is not an action", _ONE_OF_THEM, f"did you mean {meant[word.lower()]}?"
        )
    return None


def of_predecessor(words: Sequence[str]) -> Problem | None:
    """The problem of `create a3 gke FILE`, as ai-infra-cluster-provisioning had it; None if not."""
    verb, *others = [word.lower() for word in words[:3]] or [""]
    kind = next((it for it in others if it in _KINDS_OF_PREDECESSOR), None)
    if action(verb) not in {Action.CREATE, Action.DESTROY} or kind is None:
        return None
    in_list = [_MACHINES_OF_PREDECESSOR.get(others[0]), _KINDS_OF_PREDECESSOR[kind]]
    write = " and ".join(filter(None, in_list)) or "what it shall make"
    if action(verb) is Action.DESTROY:
        fix = "have its own image destroy what it has made: this program leaves that alone"
    else:
        fix = f"write {write} to an env.list, and run Create"
    return wrong(
        f"{shown(' '.join(words))} is a command line of ai-infra-cluster-provisioning",
        "here an env.list says what to make, and the action stands alone",
        f"{fix}; docs/how-to/from-ai-infra-cluster-provisioning.md has the rest, line by line",
    )


def of_more(about: Action, words: Sequence[str]) -> Problem:
    """The problem of what stands behind the one name that an action takes."""
    is_ssh = about is Action.SSH
    if about is Action.FETCH:
        return wrong(
            f"Fetch takes a job, a path and a destination, and {shown(' '.join(words))} stands"
            " behind them",
            fix="a path with blanks in quotes; Fetch once for each path",
        )
    return wrong(
        f"{about} takes one name, and {shown(' '.join(words))} stands behind it",
        "it opens a shell, and hands no command over" if is_ssh else "",
        "--forward 6006 for a port; else put --command='...' behind the gcloud command that it"
        " prints"
        if is_ssh
        else f"run {about} once for each",
    )


def begins_command(argument: str, words: Sequence[str]) -> bool:
    """Whether a job's command begins here, without the -- that belongs before it."""
    if [action(word) for word in words] != [Action.RUN] or not argument.strip():
        return False
    return not (argument.startswith("-") or "=" in argument or action(argument))


def of_command(command: Sequence[str]) -> Problem:
    """The problem of a job's command without the -- before it."""
    whole = masking.mask(shlex.join(command))
    is_short = len(whole) <= _LONGEST_COMMAND and whole.isprintable()
    return wrong(
        f"the job's command begins with {shown(command[0])}, without a -- before it",
        "the options of a command can't be told from this program's own",
        f"Run -- {whole if is_short else 'COMMAND'}",
    )


def is_scenario(word: str) -> bool:
    """Whether the word after --rehearse is a list of scenarios, not the action."""
    looks_so = re.fullmatch(r"[a-z][a-z,-]*", word)
    # The same similarity as for options: startup-fails is somewhat similar to Status.
    like_an_action = difflib.get_close_matches(word[:_LONGEST], _ACTIONS, n=1, cutoff=_ALIKE)
    known = word in ACTIONS_BY_OTHER_NAMES or of_stray(word) is not None
    return bool(looks_so) and not like_an_action and not known


def of_scenario(word: str) -> Problem:
    """The problem of a scenario that is separated from --rehearse by a blank."""
    return wrong(
        f"{shown(word)} after {Option.REHEARSE} is not an action",
        f"a scenario must follow {Option.REHEARSE} with =, because it is optional",
        f"did you mean {Option.REHEARSE}={word}?",
    )


def _meant(word: str) -> Action | None:
    """The action that a word means, by another name or by similarity; None if there is none."""
    try:
        return Action(_parse(word))
    except parsing.InvalidValueError as error:
        return Action(error.fix) if error.fix else None


_parse: Final = parsing.choice(Action, ACTIONS_BY_OTHER_NAMES)


def _fix_of_option(bare: str) -> tuple[str, bool | None]:
    """How to fix an unknown option, and whether it has a value; None if that is not known."""
    if bare in _OTHER_NAMES:
        return f"did you mean {_OTHER_NAMES[bare]}?", bare in _WITH_VALUE
    meant = _ACTIONS.get(bare) or ACTIONS_BY_OTHER_NAMES.get(bare)
    if meant:
        return f"did you mean {meant}? An action has no dashes", False
    if bare in _DOCKERS:
        return "write docker's options before the image's name", bare in _DOCKERS_WITH_VALUE
    from provision.settings import spelling  # noqa: PLC0415 - knows, and so loads, all settings

    setting = bare.replace("-", "_").upper()
    if spelling.is_known(setting):
        return f"it is a setting: write {setting}=value to the env.list", True
    names = {option.lstrip("-"): option for option in Option}
    close = difflib.get_close_matches(bare[:_LONGEST], names, n=1, cutoff=_ALIKE)
    if close:
        option = names[close[0]]
        return f"did you mean {option}?", option.needs_value
    return "--help shows the options", None
