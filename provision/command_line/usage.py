"""The help: an overview on one screen, and one screen for each action."""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from provision.command_line.options import OF_A_JOB, Option
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_WIDTH: Final = 80
_STARTS: Final = (
    ("usage: ", "aiinfra"),
    ("   or: ", "docker run -it --env-file env.list IMAGE"),
)
"""How the program is started: as a command, and as a container."""


class _About(NamedTuple):
    """The help about an action: its row in `actions.tsv`."""

    behind: str  # what may stand behind the action; "" for nothing
    line: str
    story: str
    page: str


@functools.cache
def _about() -> Mapping[Action, _About]:
    """Action -> its help."""
    lines = Path(__file__).with_name("actions.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {
        Action(action): _About("" if behind == "-" else behind, *rest)
        for action, behind, *rest in rows
    }


def overview() -> str:
    """The overview, on one screen."""
    common = [option for option in Option if option.actions == frozenset(Action)]
    return _text(
        [
            *_usage("ACTION"),
            "",
            "Turn an env.list into a GPU cluster on Google Cloud, and remove it again.",
            "",
            "actions, in upper or lower case:",
            *_table((str(action), _about()[action].line) for action in Action),
            *_paragraph(
                f"Options of all actions: {', '.join(common)}; those of one: ACTION --help."
                " More: --help settings; docs/"
            ),
        ]
    )


def of_action(action: Action) -> str:
    """The help about an action, with its options."""
    about = _about()[action]
    own = [option for option in Option if action in option.actions]
    # On one screen: what they are stands in docs/how-to/run.md.
    of_a_job = [it for it in own if it in OF_A_JOB and action is Action.RUN]
    return _text(
        [
            *_usage(action, about.behind),
            "",
            *_paragraph(about.story),
            *([] if of_a_job else [""]),
            "options:",
            *_table((it.form, it.words) for it in own if it not in of_a_job),
            *_paragraph(
                f"Those that JOB_OPTIONS may have, too: {', '.join(of_a_job)}" if of_a_job else ""
            ),
            *([] if of_a_job else [""]),
            *_paragraph(
                f"More: {about.page}, and --help settings for the settings in an env.list."
            ),
        ]
    )


def wrapper(image: str) -> str:
    """A shell script that runs an image by docker or podman, with what it needs of the machine."""
    script = Path(__file__).with_name("wrapper.sh").read_text(encoding="utf-8")
    return script.replace("@IMAGE@", image)


def _usage(action: str, behind: str = "") -> Iterator[str]:
    for begin, program in _STARTS:
        yield f"{begin}{program} {action} [OPTION]... {behind}".rstrip()


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A table with two columns, names and descriptions."""
    kept = list(rows)
    column = max(len(name) for name, _ in kept) + 4
    for name, words in kept:
        yield from textwrap.wrap(
            words,
            _WIDTH,
            initial_indent=f"  {name}".ljust(column),
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
