"""The help: what the program can do on one screen, and each action on one of its own."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.command_line.options import Option
from provision.settings.choices import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_WIDTH: Final = 80
_PROGRAM: Final = "docker run -it --env-file env.list IMAGE"


@dataclass(frozen=True)
class _About:
    """What there is to say of an action.

    Attributes:
        line: In one line.
        story: In a paragraph.
        page: Where to read on.
    """

    line: str
    story: str
    page: str


_ABOUT: Final[Mapping[Action, _About]] = MappingProxyType(
    {
        Action.CREATE: _About(
            "make the cluster, or change it to what the settings say now",
            "Check the settings, plan, show the plan and apply that plan; wait for the machines"
            " and for their start-up, and say how to connect. Run it again to change the"
            " cluster, or to go on after a run that ended early or found no capacity."
            " It asks before it replaces, removes or shrinks anything; where nobody can be asked"
            " it refuses.",
            "docs/how-to/capacity.md",
        ),
        Action.DESTROY: _About(
            "remove everything that Create made; it does not ask",
            "Plan the destruction, show the plan, remove everything that Create made, and clear"
            " the state folder but its logs. It needs PROJECT_ID, NAME_PREFIX and ZONE (and"
            " TERRAFORM_GCS_PATH, where Create had it) and never asks.",
            "docs/how-to/after-a-kill.md",
        ),
        Action.VALIDATE: _About(
            "check the settings; where there are credentials, ask Google too",
            "List all problems of the settings at once. Where there are credentials, ask Google"
            " about permissions, APIs, quota, machines, image and names too, and have Terraform"
            " validate its modules. Nothing is made.",
            "docs/reference/online-checks.md",
        ),
        Action.PLAN: _About(
            "show what Create would do, and change nothing",
            "Check as Create does, and show what it would add, change and destroy. Nothing is"
            " written to the cloud, not even a lock.",
            "docs/how-to/terraform.md",
        ),
        Action.STATUS: _About(
            "show what exists, how it stands and what it waits for",
            "Show the VMs or node pools and the step that each is at, requests for capacity and"
            " why they wait, and links to consoles. Nothing is changed.",
            "docs/how-to/look-after-a-cluster.md",
        ),
        Action.TEST: _About(
            "test the GPUs of the VMs, or the bandwidth between GKE nodes",
            "Compare the GPUs and network interfaces that each VM has found with what its machine"
            " type has. On GKE, run a job that measures NCCL's bandwidth between nodes, judge it"
            " and remove the job.",
            "docs/how-to/look-after-a-cluster.md",
        ),
        Action.DEBUG: _About(
            "write all that a run would use into a folder; open a shell there",
            "Write the settings and Terraform's modules with their values into a folder, with"
            " secrets masked, and on a terminal open a shell there. Nothing is made.",
            "docs/how-to/terraform.md",
        ),
    }
)


def overview() -> str:
    """What the program can do, on one screen."""
    common = [option for option in Option if option.actions == frozenset(Action)]
    others = ", ".join(option for option in Option if option not in common)
    return _text(
        [
            f"usage: {_PROGRAM} ACTION [OPTION]...",
            "",
            "Turn an env.list into a GPU cluster on Google Cloud, and take it down again.",
            "",
            "actions, in any case:",
            *_table((str(action), _ABOUT[action].line) for action in Action),
            "",
            "options:",
            *_table((option.form, option.words) for option in common),
            f"  Of some actions: {others}",
            "",
            *_paragraph(
                "Read on: ACTION --help for an action and its options, --help settings for what an"
                " env.list can say, README.md and docs/ for the rest."
            ),
        ]
    )


def of_action(action: Action) -> str:
    """What an action does, and its options alone."""
    about = _ABOUT[action]
    own = [option for option in Option if action in option.actions]
    return _text(
        [
            f"usage: {_PROGRAM} {action} [OPTION]...",
            "",
            *_paragraph(about.story),
            "",
            "options:",
            *_table((option.form, option.words) for option in own),
            "",
            *_paragraph(
                f"Read on: {about.page}, and --help settings for what an env.list can say."
            ),
        ]
    )


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Rows of a name and words, the words in one column."""
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
