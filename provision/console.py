"""The only module that prints.

Results go to stdout; progress, notes and problems to stderr. With `--output json` stdout is one
document and nothing else. Colours follow the terminal, NO_COLOR and FORCE_COLOR (rich).
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console as RichConsole
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.errors import Problem

_MOST_LINES = 10
"""Of a why or fix on a terminal; Terraform's own words stand above in full, and in the JSON."""


class Console:
    """Where the program speaks.

    Args:
        as_json: Stdout is for one JSON document; texts that are results go nowhere.
    """

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        # soft_wrap: a line is a line, whatever the terminal's width, so that it can be copied.
        self._err = RichConsole(stderr=True, highlight=False, markup=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """Whether a person can be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def colours(self) -> bool:
        """Whether what goes to stderr may carry colours."""
        return self._err.is_terminal and not self._err.no_color

    def result(self, text: str) -> None:
        """Print what the action was asked for."""
        if not self._as_json:
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()

    def help(self, text: str) -> None:
        """Print what the program can do; whoever asks for help gets it, whatever the output."""
        sys.stdout.write(text.rstrip("\n") + "\n")

    def document(self, document: Mapping[str, Any]) -> None:
        """Print the run's JSON document, if that is what stdout is for."""
        if self._as_json:
            sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
            sys.stdout.flush()

    def progress(self, text: str) -> None:
        """Say what is going on."""
        self._err.print(Text(text, style="bold"))

    def problems(self, problems: Sequence[Problem], heading: str) -> None:
        """Print what made the run fail, all at once."""
        self._err.print(Text(heading, style="bold red"))
        self._list(problems)

    def notes(self, notes: Sequence[Problem]) -> None:
        """Print what is worth knowing."""
        if notes:
            self._err.print(Text("Worth knowing:", style="bold yellow"))
            self._list(notes)

    def traceback(self) -> None:
        """Print the exception that is being handled: a bug of this program."""
        self._err.print_exception(show_locals=False)

    def raw(self, data: bytes) -> None:
        """Pass on another program's output untouched, to stderr."""
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    def ask(self, question: str) -> bool:
        """Ask a person on the terminal; only "yes" is a yes."""
        self._err.print(Text(question + ' Only "yes" is a yes: ', style="bold"), end="")
        return sys.stdin.readline().strip().lower() == "yes"

    def _list(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            line = Text("  ")
            if problem.setting:
                line.append(problem.setting, style="bold").append("  ")
            line.append(problem.what)
            self._err.print(line)
            for name, value in (("why", problem.why), ("fix", problem.fix)):
                lines = value.splitlines()
                if len(lines) > _MOST_LINES:
                    more = f"... and {len(lines) - _MOST_LINES} more lines above"
                    lines = [*lines[:_MOST_LINES], more]
                for number, line_of_value in enumerate(lines):
                    lead = f"      {name}: " if number == 0 else "           "
                    self._err.print(Text(lead, style="dim").append(line_of_value))
