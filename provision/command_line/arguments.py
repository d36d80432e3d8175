"""Parsing the arguments, with all problems reported at once.

argparse stops at the first problem and can't make these suggestions. For so few options, the loop
below does all that is left for it to do.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.command_line import suggestions
from provision.command_line.options import FORMATS, Option, Options, wrong
from provision.settings import parsing
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.errors import Problem

_NAMES: Final = {**{str(option): option for option in Option}, "-h": Option.HELP}
_ABOUT_ONE: Final = frozenset(
    {Action.LOGS, Action.JOBS, Action.CANCEL, Action.FETCH, Action.SSH, Action.BAKE, Action.OFFERS}
)
"""The actions behind which the name of a job, of a VM, of an image or of a GPU may stand."""
_HELP: Final = "help"  # --help as a word, as other programs take it


@dataclass(frozen=True)
class CommandLine:
    """The result of parsing the arguments."""

    options: Options  # the options that were understood
    problems: tuple[Problem, ...] = ()
    understood: bool = True  # whether at most the action is wrong, so that the settings can be read


def read(argv: Sequence[str]) -> CommandLine:
    """Parse a command line; options may be before or after the action, and can't be abbreviated.

    Returns options and problems; invalid arguments never raise an exception.
    """
    given, words, rest, (env, secrets, mounts), unclear = _sorted(argv)
    words, topic = _helped(given, words)
    helps = Option.HELP in given
    acting = [number for number, word in enumerate(words) if suggestions.action(word)]
    first = suggestions.action(words[acting[0]]) if acting else None
    job = ""
    others: tuple[str, ...] = ()
    if first in _ABOUT_ONE and words[acting[0] + 1 :] and not helps:
        job = words.pop(acting[0] + 1)
        more = [*words[acting[0] + 1 :], *rest]
        # A folder that is fetched may be called logs.
        if more and (first is Action.FETCH or not any(map(suggestions.action, more))):
            most = {Action.CANCEL: len(more), Action.FETCH: 2}.get(first, 0)
            others, too_many = tuple(more[:most]), more[most:]
            unclear += [suggestions.of_more(first, too_many)] if too_many else []
            words, rest = words[: acting[0] + 1], []
    if first is not Action.RUN:
        words += rest
        rest = []
    actions: list[Action] = []
    bad: list[Problem] = []
    for word in words:
        action = suggestions.action(word)
        stray = None if action else suggestions.of_stray(word)
        if action:
            actions += [action] if action not in actions else []
        elif stray:
            unclear.append(stray)
        else:
            bad.append(suggestions.of_action(word))
    if len(actions) > 1:
        bad.append(
            wrong(
                f"there are {len(actions)} actions: {', '.join(actions)}",
                "a run can do only one action",
                "write one action, and run the program again for the other",
            )
        )
    options = Options(
        actions[0] if len(actions) == 1 else None,
        MappingProxyType(given),
        job,
        others,
        tuple(rest),
        MappingProxyType(env),
        MappingProxyType(secrets),
        mounts,
        topic,
    )
    if options.action and not helps:
        bad += options.misfits(options.action)
    return CommandLine(options, (*unclear, *bad), understood=not unclear)


def _helped(given: dict[Option, str], words: list[str]) -> tuple[list[str], str]:
    """The words without those that say what --help is about, and what that is beside an action."""
    if words and words[0].lower() == _HELP:
        given[Option.HELP] = ""
        words = words[1:]
    others = (word for word in words if not suggestions.action(word))
    topic = next(others, "") if Option.HELP in given else ""
    return ([], topic) if topic else (words, "")


def _sorted(
    argv: Sequence[str],
) -> tuple[
    dict[Option, str],
    list[str],
    list[str],
    tuple[dict[str, str], dict[str, str], tuple[str, ...]],
    list[Problem],
]:
    """The options with their values (the last one counts), the other arguments, and problems.

    Between the two: what stands behind `--`, and all values of --env, --secret and --mount.
    """
    given: dict[Option, str] = {}
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    mounts: list[str] = []
    words: list[str] = []
    problems: list[Problem] = []
    left = deque(argv)
    while left:
        argument = left[0]
        if argument == "--":
            left.popleft()
            break
        if Option.HELP not in given and suggestions.begins_command(argument, words):
            problems.append(suggestions.of_command(left))
            left.clear()
            break
        if not argument.startswith("-"):
            words.append(left.popleft())
            continue
        name, value, is_tied = parsing.option(left, _needs_value)
        option = _NAMES.get(name)
        if option is None:
            unknown = suggestions.of_option(name)
            problems.append(unknown.problem)
            if not is_tied and left and unknown.takes(left[0]):
                left.popleft()
            continue
        if option is Option.REHEARSE and not is_tied and left and suggestions.is_scenario(left[0]):
            problems.append(suggestions.of_scenario(left.popleft()))
        given[option] = value
        problems += filter(None, [_wrong_value(option, value, tied=is_tied)])
        if option in {Option.ENV, Option.SECRET}:
            name, _, text = value.partition("=")
            (env if option is Option.ENV else secrets)[name] = text
        mounts += [value] if option is Option.MOUNT else []
    if predecessors := suggestions.of_predecessor(words):
        words, problems = [], [predecessors]
    # An empty argument, as scripts may pass it, is ignored.
    return (
        given,
        [word for word in words if word.strip()],
        list(left),
        (env, secrets, tuple(mounts)),
        problems,
    )


def _needs_value(name: str) -> bool:
    return name in _NAMES and _NAMES[name].needs_value


def _wrong_value(option: Option, value: str, *, tied: bool) -> Problem | None:
    if option.needs_value and not value:
        return wrong(
            f"{option} needs a {option.metavar}",
            fix=f"{option} {option.metavar}, or remove {option}",
        )
    if option is Option.OUTPUT and value not in FORMATS:
        return wrong(
            f"{option} {suggestions.shown(value)} is not one of the choices",
            f"one of {', '.join(FORMATS)}",
            f"{option} json",
        )
    if option is Option.ENV and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=(?s:.*)", value):
        return wrong(
            f"{option} {suggestions.shown(value.partition('=')[0])} sets no variable",
            "it takes a name of letters, digits and _, a =, and the value",
            f"{option} WANDB_MODE=offline",
        )
    if option is Option.SECRET and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(=.+)?", value):
        # Not echoed: it may be the secret itself.
        return wrong(
            f"{option} names no variable",
            "it takes a variable's name of letters, digits and _, and what names a secret",
            f"{option} HF_TOKEN=hf-token",
        )
    if tied and not option.metavar:
        return wrong(f"{option} takes no value", fix=f"write only {option}, or remove all of it")
    return None
