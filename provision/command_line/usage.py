"""The help: an overview on one screen, and one screen for each action."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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


@dataclass(frozen=True)
class _About:
    """The help about an action."""

    line: str
    story: str
    page: str
    behind: str = ""  # what may stand behind the action


_ABOUT: Final[Mapping[Action, _About]] = MappingProxyType(
    {
        Action.CREATE: _About(
            "create the cluster, or change it to match the settings",
            "Check the settings, show the plan and apply it; wait for the machines and their"
            " start-up, and say how to connect. Run it again to change the cluster, or to go on"
            " after a run that ended early. It asks before it makes a cluster, costs more or loses"
            " anything; without a terminal it goes on, and refuses losses.",
            "docs/how-to/capacity.md",
        ),
        Action.DESTROY: _About(
            "remove everything that Create made",
            "Show what ends and what data goes, remove everything that Create made, and clear"
            " the state folder except for its logs. It needs PROJECT_ID, NAME_PREFIX and ZONE"
            " (and TERRAFORM_GCS_PATH if Create had it). On a terminal it asks where data goes, or"
            " where the settings are of another cluster.",
            "docs/how-to/after-a-kill.md",
        ),
        Action.VALIDATE: _About(
            "check the settings; with credentials, also check with Google",
            "List all problems of the settings at once. With credentials, also check with Google:"
            " permissions, APIs, quota, machines, image and names; and let Terraform validate its"
            " modules. Nothing is created.",
            "docs/reference/online-checks.md",
        ),
        Action.PLAN: _About(
            "show what Create would do, and change nothing",
            "Check as Create does, and show what it would make, change and lose, what that costs"
            " and when it ends. Nothing is made, and no lock is taken; beside a state, Terraform's"
            " own text is kept as a log.",
            "docs/how-to/terraform.md",
        ),
        Action.STATUS: _About(
            "show what exists, its state, and what it is waiting for",
            "Show the VMs or node pools and the step that each is at, requests for capacity and"
            " why they are waiting, and links to the console. Without NAME_PREFIX, list all"
            " deployments of the state bucket. Nothing is changed.",
            "docs/how-to/look-after-a-cluster.md",
        ),
        Action.TEST: _About(
            "test VMs and the bandwidth between them, or between GKE nodes",
            "Have each VM check its GPUs, their memory, interfaces and local SSDs, and all VMs"
            " measure NCCL's bandwidth between them; name the VMs at fault. On GKE, run a job that"
            " measures between nodes, judge the result and delete the job.",
            "docs/how-to/test.md",
        ),
        Action.DEBUG: _About(
            "write all that a run would use to a folder; open a shell there",
            "Write the settings and Terraform's modules with their values to a folder, with"
            " secrets masked, and on a terminal open a shell there, in which terraform plan works"
            " as it stands. Nothing is created.",
            "docs/how-to/terraform.md",
        ),
        Action.RUN: _About(
            "run a program on all machines, as in: Run -- torchrun train.py",
            "Send the folder of --copy, else the current one; run on all machines at once what"
            " stands behind --, and show what rank 0 says.",
            "docs/how-to/run.md",
            "-- COMMAND",
        ),
        Action.JOBS: _About(
            "list the jobs, or show the one whose NAME follows",
            "Show each job: how far it is, since when, on how many machines, and what it waits for;"
            " or with a NAME behind it, all about that one.",
            "docs/how-to/run.md",
            "[NAME]",
        ),
        Action.LOGS: _About(
            "show what a job has said: Logs [NAME] [--follow]",
            "Show what rank 0 of a job has said, of the newest job if no NAME is given; also when"
            " the job is over, and from any machine.",
            "docs/how-to/run.md",
            "[NAME]",
        ),
        Action.CANCEL: _About(
            "end a job: Cancel NAME",
            "End a job: its programs get SIGTERM, and two minutes to save. To cancel one that is"
            " over is no error.",
            "docs/how-to/run.md",
            "NAME",
        ),
        Action.SSH: _About(
            "open a shell on a VM: Ssh [VM|RANK]",
            "Print the command that opens a shell on the VM of this name or rank, of rank 0 if none"
            " is given; on a terminal outside of the image, run it.",
            "docs/how-to/multi-node.md",
            "[VM|RANK]",
        ),
        Action.BAKE: _About(
            "make an image with all that start-up installs: Bake [NAME]",
            "Create one VM of these settings, without command and storage; seal it, make an image"
            " of its disk, and destroy the VM, whatever happened. Destroy does not take the image;"
            " Status without NAME_PREFIX lists them.",
            "docs/how-to/boot-image.md",
            "[NAME]",
        ),
    }
)


def overview() -> str:
    """The overview, on one screen."""
    common = [option for option in Option if option.actions == frozenset(Action)]
    others = ", ".join(option for option in Option if option not in common)
    return _text(
        [
            *_usage("ACTION"),
            "",
            "Turn an env.list into a GPU cluster on Google Cloud, and remove it again.",
            "",
            "actions, in upper or lower case:",
            *_table((str(action), _ABOUT[action].line) for action in Action),
            *_paragraph(
                f"Options, see ACTION --help: {', '.join(common)}; for some actions,"
                f" {others}. More: --help settings; docs/"
            ),
        ]
    )


def of_action(action: Action) -> str:
    """The help about an action, with its options."""
    about = _ABOUT[action]
    own = [option for option in Option if action in option.actions]
    # On one screen: what they are stands in docs/how-to/run.md.
    of_a_job = [it for it in own if it in OF_A_JOB and action is Action.RUN]
    return _text(
        [
            *_usage(action, about.behind),
            "",
            *_paragraph(about.story),
            "",
            "options:",
            *_table((it.form, it.words) for it in own if it not in of_a_job),
            *_paragraph(
                f"Options that JOB_OPTIONS may have, too, as --nodes 2: {', '.join(of_a_job)}"
                if of_a_job
                else ""
            ),
            "",
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
