"""A job whose nodes cost is agreed to before it is submitted."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import run
from provision.deployment.kind import Needs, Stranded
from provision.documents.job import Job, JobFailure, JobState, JobTasks
from provision.errors import Declined, SettingsError
from provision.spec.job import JobSpec
from tests.unit.kinds.cases import having
from tests.unit.memory_folder import MemoryFolder

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


@pytest.mark.parametrize(
    ("tasks", "failed", "attempts", "kept"),
    [
        (None, None, {(1, 0): b"early", (2, 0): b"late"}, "late"),
        (JobTasks(first=1, last=8), None, {(1, 1): b"one", (2, 5): b"five"}, "one"),
        (JobTasks(first=1, last=8), 5, {(1, 1): b"one", (1, 5): b"five"}, "five"),
        (JobTasks(first=1, last=8), None, {(2, 5): b"five"}, ""),
    ],
)
def test_what_a_job_said_last_outlives_its_cluster(
    monkeypatch: pytest.MonkeyPatch,
    tasks: JobTasks | None,
    failed: int | None,
    attempts: dict[tuple[int, int], bytes],
    kept: str,
) -> None:
    folder = MemoryFolder()
    jobs = having(log=lambda _, attempt, rank, __: enumerate([attempts.get((attempt, rank), b"")]))
    monkeypatch.setattr(run, "connect", lambda _: having(folder=folder))
    monkeypatch.setattr("provision.lifecycle.ownership.deployed", lambda *_: having(kind="vms"))
    monkeypatch.setattr("provision.kinds.registry.named", lambda _: having(jobs=lambda *_: jobs))
    failure = None if failed is None else JobFailure(machine="a", rank=failed, cause="", tail="")
    job = Job(
        name="a", state=JobState.FAILED, attempt=2, tasks=tasks, failure=failure, submitted=""
    )
    said: list[str] = []
    context = having(report=having(jobs=[job]), console=having(progress=said.append))
    assert bool(run._settle(context)) is bool(kept)
    assert "".join(map(str, folder.files.values())) == kept
    assert all(it.startswith("The log of ") for it in said)
