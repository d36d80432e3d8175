"""A job whose nodes cost is agreed to before it is submitted."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import run
from provision.deployment.kind import Needs
from provision.errors import Declined
from provision.spec.job import JobSpec

SPEC = JobSpec(name="a", command=("true",))


def _asked(*, terminal: bool, more: str, answer: bool = True, **how: bool) -> list[str]:
    said: list[str] = []

    def go_on(question: str) -> bool:
        said.append(question)
        return answer

    console = SimpleNamespace(is_terminal=terminal, progress=said.append, go_on=go_on)
    context = SimpleNamespace(
        console=console,
        settings=SimpleNamespace(ask_above=10.0),
        agreed=False,
        report=SimpleNamespace(action="Run"),
    )
    needs = Needs(words="it takes 2 nodes", more=Decimal(more))
    jobs = SimpleNamespace(needs=lambda _: needs)
    run._agree(cast("Any", context), cast("Any", jobs), SPEC, **{"asks": True, **how})
    assert said[0] == "it takes 2 nodes"
    return said[1:]


def test_a_person_is_asked_before_nodes_come_for_so_many_dollars() -> None:
    assert _asked(terminal=True, more="10") == ["Go on?"]
    assert _asked(terminal=True, more="9.99") == []
    assert _asked(terminal=True, more="0") == []
    assert _asked(terminal=False, more="80") == []
    assert _asked(terminal=True, more="80", asks=False) == []
    with pytest.raises(Declined, match="No job was submitted"):
        _asked(terminal=True, more="80", answer=False)
