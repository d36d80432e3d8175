"""A job whose nodes cost is agreed to before it is submitted."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import run
from provision.deployment.kind import Needs, Stranded
from provision.documents.job import Job, JobState
from provision.errors import Declined, SettingsError
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


def test_a_job_that_runs_on_what_is_left_keeps_the_cluster_where_it_is() -> None:
    known = {"a-1": JobState.RUNNING, "b-1": JobState.WAITING, "c-1": JobState.SUCCEEDED}
    found = {name: Job(name=name, state=it, submitted="") for name, it in known.items()}
    jobs = cast("Any", SimpleNamespace(names=lambda: list(known), find=found.get))
    context = cast("Any", SimpleNamespace(settings=SimpleNamespace(sites=("z-a", "z-b"))))
    lost = Stranded(what="1 of 2 VMs run", left=1)
    with pytest.raises(SettingsError, match="b-1 waits for machines") as refused:
        run._require_movable(context, jobs, cast("Any", None), found["b-1"], lost)
    assert refused.value.problems[0].why.startswith("a-1 still runs on those that are left")
