"""What tests of kinds make again and again."""

import json
import re
import shlex
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from provision.errors import Problem, ProvisionError
from provision.time.clock import Clock
from provision.time.stages import Progress


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


def problem_of(
    kind: type[ProvisionError], call: Callable[..., object], *given: Any, **named: Any
) -> Problem:
    """The one problem of the error that this call ends with."""
    with pytest.raises(kind) as caught:
        call(*given, **named)
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
