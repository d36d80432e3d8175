"""What a container's words say: variables, scripts that are sourced, files that are waited for.

Nothing is run. It is read in the order in which it stands, as if each line were reached.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_IF_SET: Final = re.compile(r"\$\{(\w+):\+((?:\$\{\w+\}|[^{}])*)\}")
_NEXT: Final = re.compile(r"&&|;|\|\||(?<!\S)[{}](?!\S)")
_WAIT: Final = re.compile(r"until \[ -e (\S+) \]")
_LIMIT: Final = re.compile(r"-ge (\d+) \]")
_TOUCH: Final = re.compile(r"^\s*touch (\S+)", re.MULTILINE)
_SOURCE: Final = frozenset({".", "source"})
_HEREDOC: Final = re.compile(r"<<-?\s*'?(\w+)'?")


@dataclass
class Shell:
    """A shell on its way through a script."""

    variables: dict[str, str]  # what is set so far
    # what a script that is sourced does: path -> variables, or the words of its end
    sourced: Callable[[str, Mapping[str, str]], dict[str, str] | str]
    # what the shell said when it ended too early; "" as long as it goes on
    problem: str = field(default="")

    def read(self, script: str) -> None:
        """Go through a script."""
        for line in _lines(script):
            for command in _NEXT.split(line):
                if not self.problem:
                    self._step(command.strip())

    def _step(self, command: str) -> None:
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            return
        if words[:1] == ["export"]:
            words = words[1:]
        own = {}
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            name, value = found.groups()
            own[name] = self._expanded(value)
            words = words[1:]
        if not words:
            self.variables |= own
        elif words[0] in _SOURCE and len(words) > 1:
            path = self._expanded(words[1])
            answer = self.sourced(path, {**self.variables, **own})
            if isinstance(answer, str):
                self.problem = answer
            else:
                self.variables |= answer
        elif words[0] == "unset":
            for name in words[1:]:
                self.variables.pop(name, None)

    def _expanded(self, text: str) -> str:
        text = _IF_SET.sub(lambda it: it[2] if self.variables.get(it[1]) else "", text)
        return _VARIABLE.sub(lambda it: self.variables.get(it[1] or it[2], ""), text)


def words(container: Mapping[str, Any]) -> list[str]:
    """The command of a container, with its arguments."""
    return [str(it) for it in [*(container.get("command") or []), *(container.get("args") or [])]]


def waits_for(container: Mapping[str, Any]) -> tuple[str, float] | None:
    """The file that a container waits for, and how many seconds; None for one that does not."""
    text = " ".join(words(container))
    wanted, limit = _WAIT.search(text), _LIMIT.search(text)
    if wanted is None:
        return None
    return wanted.group(1), float(limit.group(1)) if limit else float("inf")


def touches(container: Mapping[str, Any]) -> list[str]:
    """The files that a container makes by `touch`."""
    return _TOUCH.findall("\n".join(words(container)))


def _lines(script: str) -> Iterator[str]:
    """The lines of a script, continued ones as one, without what is written into files."""
    end = None
    for line in script.replace("\\\n", " ").splitlines():
        if end is not None:
            end = None if line.strip() == end else end
            continue
        here = _HEREDOC.search(line)
        end = here.group(1) if here else None
        yield line
