"""A job whose nodes cost is agreed to before it is submitted, and what of a cluster may move."""

import contextlib
import dataclasses
import signal
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import copied_folder, jobs, run, validate
from provision.deployment.kind import Needs, Stranded
from provision.documents.job import Job, JobFailure, JobState, JobTasks
from provision.errors import Declined, Interrupted, SettingsError, Unanswered
from provision.kinds import registry
from provision.lifecycle import ownership, pricing
from provision.spec import job
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
    known = {"a-1": JobState.RUNNING, "b-1": JobState.PREPARING, "c-1": JobState.SUCCEEDED}
    found = {name: Job(name=name, state=it, submitted="") for name, it in known.items()}
    jobs = cast("Any", SimpleNamespace(names=lambda: list(known), find=found.get))
    context = cast("Any", SimpleNamespace(settings=SimpleNamespace(sites=("z-a", "z-b"))))
    lost = Stranded(what="1 of 2 VMs run", left=1)
    with pytest.raises(SettingsError, match="b-1 waits for machines") as refused:
        run._require_movable(context, jobs, cast("Any", None), found["b-1"], lost)
    assert refused.value.problems[0].why.startswith("a-1 still runs on those that are left")


@pytest.mark.parametrize(("left", "lost"), [(1, ("1234 of ana",)), (0, ())])
def test_a_move_names_what_others_have_in_the_queue_of_the_machines_that_it_ends(
    left: int, lost: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    one = Job(name="b-1", state=JobState.WAITING, submitted="")
    theirs = Job(name="1234", state=JobState.WAITING, submitted="", by="ana")
    there = SimpleNamespace(others=lambda: [theirs], names=lambda: ["1234", "b-1"])
    there.find = {"1234": theirs, "b-1": one}.get
    settings = SimpleNamespace()
    context = SimpleNamespace(settings=settings, but=lambda **how: made.append(how["move"]))
    for owner, name, found in (
        (run, "connect", None),
        (ownership, "existing", SimpleNamespace(serial=3)),
        (run, "_require_movable", None),
        (registry, "of", SimpleNamespace(spec=str)),
        (pricing, "of_the_rest", settings),
        (run, "create", None),
    ):
        monkeypatch.setattr(owner, name, lambda *_, found=found, **__: found)

    stranded = Stranded(what="1 of 2 VMs run", left=left)
    assert run._elsewhere(cast("Any", context), cast("Any", there), one, stranded, own=True)

    assert [it.lost for it in made] == [lost]


@pytest.mark.parametrize(("earlier", "own"), [(None, True), (object(), False)])
def test_a_cluster_that_was_there_is_not_this_runs_own_though_a_create_may_start_its_machines(
    earlier: object,
    own: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moves: list[bool] = []

    def follow(*given: Any, **_: object) -> Job:
        moves.append(given[3].keywords["own"])
        return Job(name="a-1", state=JobState.SUCCEEDED, submitted="")

    def nothing(*_: object, **__: object) -> None: ...

    made = iter([earlier])
    for owner, name, does in (
        (run, "connect", nothing),
        (run, "create", nothing),
        (run, "_stands", nothing),
        (run, "_agree", nothing),
        (run, "dataclasses", SimpleNamespace(replace=lambda it, **_: it)),
        (job, "require_possible", nothing),
        (validate, "require_granted", nothing),
        (ownership, "deployed", lambda *_: next(made)),
        (copied_folder, "packed", lambda *_, **__: contextlib.nullcontext()),
        (jobs, "follow", follow),
    ):
        monkeypatch.setattr(owner, name, does)
    settings = SimpleNamespace(job_nodes=None, is_gke=False)
    told = SimpleNamespace(progress=str, result=str)
    how = {"create": True, "again": "", "detach": False, "destroy_after": False}
    context = SimpleNamespace(settings=settings, console=told, copy=None, **how)
    there = SimpleNamespace(unfinished=list, submit=lambda *_: "a-1")
    run._make_and_run(cast("Any", context), SPEC, cast("Any", there))
    assert moves == [own]


@pytest.mark.parametrize(
    ("state", "restarts", "followed"),
    [
        (JobState.WAITING, 0, "a-1"),
        (JobState.WAITING, 3, ""),  # whoever says another number means it
        (JobState.FAILED, 0, ""),  # its machines were lost, and no VM is left that says so
    ],
)
def test_a_job_that_is_run_again_is_followed_if_it_goes_on_and_is_what_is_asked_for(
    state: JobState, restarts: int, followed: str
) -> None:
    context = cast("Any", SimpleNamespace(again="a", command=(), env={}, secrets={}, mounts=()))
    there = SimpleNamespace(
        names=lambda: ["a-1"],
        unfinished=lambda **_: ["a-1"],
        asked=lambda _: {"name": "a-1", "command": ["true"]},
        find=lambda _: Job(name="a-1", state=state, submitted=""),
    )
    wanted = dataclasses.replace(SPEC, restarts=restarts)
    assert run._unfinished(context, cast("Any", there), wanted) == followed


@pytest.mark.parametrize(
    ("state", "attempt", "lost", "followed"),
    [
        (JobState.WAITING, 0, False, "a-1"),
        (JobState.WAITING, 1, True, "a-1"),
        (JobState.PREPARING, 1, True, "a-1"),
        (JobState.WAITING, 1, False, ""),  # it begins again soon, whoever asks
        (JobState.PREPARING, 0, False, ""),
        (JobState.RUNNING, 1, True, ""),
    ],
)
def test_the_same_job_again_is_the_one_that_waits_for_machines(
    state: JobState,
    attempt: int,
    lost: bool,  # noqa: FBT001 - a case
    followed: str,
) -> None:
    there = SimpleNamespace(
        unfinished=lambda: ["a-1"],
        asked=lambda _: {"name": "a-1", "command": ["true"]},
        find=lambda _: Job(name="a-1", state=state, attempt=attempt, submitted=""),
        stranded=lambda _: Stranded(what="0 of 2 VMs run", left=0) if lost else None,
    )
    assert run._waiting(cast("Any", there), SPEC, None) == followed


def test_a_signal_at_the_question_of_a_move_leaves_no_cluster_that_was_to_be_destroyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(*_: object, **__: object) -> None:
        raise Unanswered(signal.SIGHUP, "Interrupted at the question; the cluster is as it was")

    def nothing(*_: object, **__: object) -> Any: ...

    for owner, name, does in (
        (run, "connect", nothing),
        (run, "create", asked),
        (run, "_require_movable", nothing),
        (registry, "of", lambda _: SimpleNamespace(spec=nothing)),
        (pricing, "of_the_rest", lambda context, *_: context.settings),
        (ownership, "existing", lambda *_: SimpleNamespace(serial=1)),
    ):
        monkeypatch.setattr(owner, name, does)
    context = cast("Any", SimpleNamespace(settings=None, but=nothing))
    lost = Stranded(what="0 of 2 VMs run", left=0)
    one = Job(name="a-1", state=JobState.WAITING, submitted="")
    with pytest.raises(Interrupted, match="Interrupted at the question") as ended:
        run._elsewhere(context, cast("Any", None), one, lost, own=True)
    # Of what never began, `after_all` leaves a cluster that was there.
    assert not isinstance(ended.value, Unanswered)
    assert ended.value.problems[0].fix == "aiinfra Logs a-1 --follow to come back to it"


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
