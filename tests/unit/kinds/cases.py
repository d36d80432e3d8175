"""Cases of a test as a table of text, and what tests of kinds make again and again.

One line is a case, its cells between bars; the first line names the parameters. A cell is YAML
where it begins as an object, a list or a quoted text, or is a number, true, false or null; `@name`
is a part that is handed over; - is no text; all else is text. A line that is indented goes on with
the row before. What stands after # at a line's beginning, or after two spaces, is a comment.
"""

import json
import re
import shlex
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from provision.errors import Problem, ProvisionError
from provision.time.clock import Clock
from provision.time.progress import Progress

_YAML = re.compile(r"[{\[\"'].*|-?[0-9.]+|true|false|null", re.DOTALL)


def cases(table: str, **parts: Any) -> pytest.MarkDecorator:
    """Make the cases of a test, whose parameters are in the first line."""
    text = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n|  # .*$", "", table))
    names, *lines = [line for line in text.strip().splitlines() if line]
    found = [[_cell(cell.strip(), parts) for cell in line.split("|")] for line in lines]
    words = names.replace("|", " ").split()
    return pytest.mark.parametrize(words, found, ids=lines)


def _cell(text: str, parts: dict[str, Any]) -> Any:
    if text == "-":
        return ""
    if text.startswith("@"):
        return parts[text[1:]]
    return yaml.safe_load(text) if _YAML.fullmatch(text) else text


def settings(table: str) -> pytest.MarkDecorator:
    """Cases of a test of what becomes of settings: `NAME=value => path JSON | path JSON`."""
    text = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n", "", table)).strip()
    return pytest.mark.parametrize("line", [line for line in text.splitlines() if line])


def follows(line: str, make: Callable[[dict[str, str]], Any]) -> None:
    """What is made of the settings of a line has these parts."""
    asked, _, told = line.partition("=> ")
    made = make(dict(word.split("=", 1) for word in shlex.split(asked)))
    for path, _, expected in (part.partition(" ") for part in told.split(" | ")):
        found = made
        for name in path.split("."):
            found = found[int(name)] if isinstance(found, list) else found[name]
        assert found == json.loads(expected), path


def having(**parts: Any) -> Any:
    """What stands in for an object of which a test needs these parts alone."""
    return SimpleNamespace(**parts)


def unheard() -> Progress:
    """A progress that nobody hears of, in no time."""
    return Progress(Clock(0), lambda _: None)


def problem_of(kind: type[ProvisionError], call: Callable[..., object], *given: Any) -> Problem:
    """The one problem of the error that this call ends with."""
    with pytest.raises(kind) as caught:
        call(*given)
    (problem,) = caught.value.problems
    return problem


def looks_at(answers: list[Any]) -> Callable[..., Any]:
    """A function that gives an answer at each call, the last again and again; errors are raised."""

    def look(*_: object) -> Any:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look
