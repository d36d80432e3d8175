"""No wait is silent for a minute, and none repeats itself: each is walked with a fake clock."""

from __future__ import annotations

import ast
import contextlib
import itertools
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.oauth2.credentials import Credentials

from provision.actions import jobs as actions_of_jobs
from provision.codes import Code
from provision.context import Cloud
from provision.deployment.deployment import OutOfDate
from provision.documents.events import Event, StageEvent, WaitingEvent
from provision.documents.job import Job, JobState
from provision.documents.timeline import OnInterrupt, StageName, StageState
from provision.errors import CapacityError, ClusterError, Interrupted, ProvisionError
from provision.google.api import GoogleApi, Service
from provision.kinds import machines
from provision.kinds.gke import control_plane, job_course, release
from provision.kinds.gke import status as gke_status
from provision.kinds.gke import testing as gke_testing
from provision.kinds.gke.jobs import GkeJobs
from provision.kinds.gke.kubernetes import stages, trials
from provision.kinds.gke.kubernetes import status as kubernetes_status
from provision.kinds.gke.left_behind import Traces
from provision.kinds.vms import after_apply, agent, bake, flex_start, out_of_date, startup
from provision.lifecycle import exclusive, search
from provision.screens import progress as screen
from provision.settings.candidates import Site
from provision.terraform.applying import Applying
from provision.time import stages as stages_module
from provision.time.clock import Clock
from provision.time.deadline import TransientError
from provision.time.stages import Progress, Stages
from tests.kubernetes import samples
from tests.unit.kinds.gke.kubernetes.test_trials import Nodes
from tests.unit.kinds.test_machines import COMING, _group
from tests.unit.kinds.vms.test_flex_start import GROUP, _document
from tests.unit.lifecycle.test_earlier_runs import GROUP as OPERATION
from tests.unit.lifecycle.test_earlier_runs import PLACE

PROVISION = Path(stages_module.__file__).parents[1]
MINUTE = 60.0
LONG = 3600.0


class Screen:
    """A screen that notes what it is shown, and when."""

    def __init__(self, time_: FakeTime) -> None:
        self._time = time_
        self.shown: list[tuple[float, Event]] = []

    def happened(self, event: Event) -> None:
        self.shown.append((self._time.now, event))

    def refresh(self, stages: Sequence[WaitingEvent]) -> None:
        del stages


class FakeTime:
    """A time that goes by when somebody sleeps, while the stages' heart beats once a second."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.beat: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            self.now += min(1.0, left)
            left -= 1.0
            self.beat()


class Run:
    """A run in a fake time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = FakeTime()
        monkeypatch.setattr(time, "sleep", self.time.sleep)
        monkeypatch.setattr(time, "monotonic", lambda: self.time.now)
        monkeypatch.setattr(time, "time", lambda: self.time.now)
        self.screen = Screen(self.time)
        self.stages = Stages(Clock(), self.screen)
        self.time.beat = self.stages.beat
        self.progress = Progress(Clock(), lambda _: None, self.stages)

    @property
    def waiting(self) -> list[WaitingEvent]:
        return [event for _, event in self.screen.shown if isinstance(event, WaitingEvent)]


def _machines(run: Run) -> None:
    api = SimpleNamespace(managed_instances=lambda *_: [COMING, COMING])
    machines.wait(cast("GoogleApi", api), _group(), timeout=LONG, progress=run.progress)


def _requests(run: Run) -> None:
    api = SimpleNamespace(resize_requests=lambda _: [_document("ACCEPTED")])
    flex_start.wait(cast("GoogleApi", api), GROUP, {"np-1"}, timeout=LONG, progress=run.progress)


def _startup(run: Run) -> None:
    place = SimpleNamespace(zone="z", project_id="p")
    reader = SimpleNamespace(
        read=lambda names: dict.fromkeys(names, startup.Startup()), place=place
    )
    startup.wait(cast("Any", reader), {"vm-1", "vm-2"}, progress=run.progress)


def _urls(run: Run) -> None:
    after_apply.wait_for_urls(lambda: {"vm-1": None}, {"vm-1"}, progress=run.progress)


def _unchanged() -> Cloud:
    """A Google whose group never does what it is asked for."""
    api = SimpleNamespace(
        apply_updates=lambda *_, **__: None,
        managed_instances=lambda *_: [{"instance": "zones/z/instances/vm-1"}],
        whole_instances=lambda *_: [],
        find=lambda *_: None,
    )
    return cast("Cloud", SimpleNamespace(api=api))


def _refresh(run: Run) -> None:
    old = [OutOfDate(name="vm-1", differences=("labels team",), in_place=True)]
    out_of_date.refresh(_unchanged(), cast("Any", PLACE), old, run.progress)


def _replacement(run: Run) -> None:
    old = [OutOfDate(name="vm-1", differences=("its image",), in_place=False)]
    out_of_date.replace(_unchanged(), cast("Any", PLACE), old, run.progress)


def _objects(run: Run) -> None:
    def not_now(*_: object) -> None:
        raise TransientError("503 no endpoints")

    wanted = {"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "kueue"}}
    cluster = SimpleNamespace(find=not_now, apply=not_now)
    stage = stages.Stage("Kueue", [wanted])
    stages.apply(cast("Any", cluster), [stage], progress=run.progress)


def _bandwidth(run: Run, cluster: object) -> None:
    facts, pool = samples.FLEX_QUEUED_ULTRA, samples.ULTRA
    trials.bandwidth(cast("Any", cluster), facts, pool, 2, timeout=LONG, progress=run.progress)


def _test_nodes(run: Run) -> None:
    _bandwidth(run, Nodes(looks=1_000_000))


def _test(run: Run) -> None:
    _bandwidth(run, Nodes(condition="Suspended"))


def _tasks(run: Run) -> None:
    """A VM that begins, and never ends."""
    answer = agent.Answer(state="running", answer={})
    folder = SimpleNamespace(
        write=lambda *_: None,
        remove=lambda *_: None,
        names=lambda *_: ["vm-1"],
        read=lambda *_: answer,
    )
    with run.progress.stage(StageName.TEST) as stage:
        agent.ask(cast("Any", folder), stage, "check", {}, vms={"vm-1": "1"}, seconds=1800)


OF_IMAGE = SimpleNamespace(name_prefix="np-bake", project_id="p", zone="us-central1-a")


def _shut_down(run: Run) -> None:
    """A VM that does not go off."""
    api = SimpleNamespace(stop_managed=lambda *_: None, find=lambda *_: {"status": "STOPPING"})
    vm = SimpleNamespace(name="np-bake-vm-1")
    with run.progress.stage(StageName.IMAGE) as stage:
        stage.counts("the VM is shut down")
        bake._stop(cast("Any", api), cast("Any", OF_IMAGE), cast("Any", vm), stage)


def _image(run: Run) -> None:
    """An image that a run has begun that was killed."""
    pages = [{"name": "mine", "status": "PENDING"}]
    folder = SimpleNamespace(location=SimpleNamespace(url="gs://states/np-bake-deployment"))
    cloud = SimpleNamespace(api=SimpleNamespace(pages=lambda *_: pages), folder=folder)
    context = SimpleNamespace(progress=run.progress)
    bake.settle(cast("Any", context), cast("Any", cloud), cast("Any", OF_IMAGE))


def _job_that(run: Run, **more: Any) -> tuple[SimpleNamespace, SimpleNamespace]:
    """A run, and the only job of its cluster."""
    job = Job(name="train-1", submitted="2026-11-23T10:00:00Z", **more)
    jobs = SimpleNamespace(
        find=lambda _: job, log=lambda *_: [], cancel=lambda _: None, stranded=lambda _: None
    )
    console = SimpleNamespace(progress=lambda _: None, is_terminal=False)
    asked = {"job_wait": None, "log_rank": 0, "log_tail": None, "notify": None}
    settings = SimpleNamespace(capacity_timeout=LONG, model_fields_set=frozenset(), **asked)
    about: dict[str, Any] = {"console": console, "settings": settings, "reached": lambda *_: None}
    report = SimpleNamespace(action="Run")
    return SimpleNamespace(clock=Clock(), progress=run.progress, report=report, **about), jobs


def _job(run: Run) -> None:
    """A job that waits behind another for ever."""
    context, jobs = _job_that(run, state=JobState.WAITING)
    actions_of_jobs.follow(cast("Any", context), cast("Any", jobs), "train-1")


def _cancelled(run: Run) -> None:
    """A job that does not end."""
    context, jobs = _job_that(run, state=JobState.STOPPING)
    actions_of_jobs.cancel(cast("Any", context), cast("Any", jobs), jobs.find(""))


def _ray(run: Run) -> None:
    """A job of Ray's that runs, and never ends."""
    cluster = SimpleNamespace(
        delete=lambda *_: True,
        all=lambda *_: [],
        apply=lambda thing: thing,
        find=lambda *_: {"status": {"jobStatus": "RUNNING"}},
    )
    facts = samples.FLEX_QUEUED_ULTRA
    trials.ray(cast("Any", cluster), facts, samples.ULTRA, 2, timeout=LONG, progress=run.progress)


def _test_cleaning(run: Run) -> None:
    cluster = SimpleNamespace(
        delete=lambda *_: True, all=lambda *_: [{"kind": "Pod"}], apply=lambda thing: thing
    )
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    tried = trials.Trial(
        cluster=cast("Any", cluster),
        wanted=job,
        words="the test",
        pods=cluster.all,
        has_started=lambda: True,
    )
    with tried.there(run.progress):
        pass


def _release(run: Run) -> None:
    context = SimpleNamespace(
        progress=run.progress, console=SimpleNamespace(progress=run.progress.tell)
    )
    cloud = SimpleNamespace(folder=SimpleNamespace(write=lambda *_: None))
    known = Traces(project="p", location="us-central1", cluster="np", networks=frozenset())
    release._clear(cast("Any", context), cast("Any", cloud), cast("Any", None), known)


def _earlier_run(run: Run) -> None:
    api = SimpleNamespace(
        unfinished=lambda _, scope: [OPERATION] if scope.startswith("zones") else [],
        cluster_operations=lambda *_: [],
        listed=lambda *_: [],
    )
    exclusive.wait_for_earlier_run(cast("GoogleApi", api), [cast("Any", PLACE)], run.progress)


def _rollout(run: Run) -> None:
    """Installers that are ready on no node."""
    status = {"observedGeneration": 1, "desiredNumberScheduled": 2}
    cluster = SimpleNamespace(
        find=lambda *_: {"metadata": {"generation": 1}, "status": status}, all=lambda *_: []
    )
    stages.wait(cast("Any", cluster), samples.FLEX_QUEUED_ULTRA, progress=run.progress)


WAITS: dict[StageName, Callable[[Run], None]] = {
    StageName.MACHINES: _machines,
    StageName.REQUESTS: _requests,
    StageName.STARTUP: _startup,
    StageName.URLS: _urls,
    StageName.REFRESH: _refresh,
    StageName.REPLACEMENT: _replacement,
    StageName.OBJECTS: _objects,
    StageName.TEST_NODES: _test_nodes,
    StageName.TEST: _test,
    StageName.TEST_CLEANING: _test_cleaning,
    StageName.RELEASE: _release,
    StageName.EARLIER_RUN: _earlier_run,
}
"""Every wait that has an end of its own -> how it is made to last until then."""

MODULES = {
    *("google/api.py", "lifecycle/exclusive.py", "lifecycle/search.py", "kinds/machines.py"),
    *(f"kinds/gke/{it}.py" for it in ("job_course", "release", "status", "testing")),
    *(f"kinds/gke/kubernetes/{it}.py" for it in ("stages", "trials")),
    *(f"kinds/vms/{it}.py" for it in ("after_apply", "agent", "bake", "flex_start")),
    *(f"kinds/vms/{it}.py" for it in ("out_of_date", "startup")),
    "actions/jobs.py",
    "actions/status.py",  # no stage: tests/unit/actions/test_watching.py
    "kinds/gke/kubernetes/job_attendant.py",  # in pods, where nobody looks
}
"""Where somebody waits for Google: above, and in the tests after that."""


def _stage_of(event: Event) -> StageName | None:
    if isinstance(event, StageEvent):
        return event.stage.name
    return event.stage if isinstance(event, WaitingEvent) else None


@pytest.mark.parametrize(
    ("name", "wait"),
    [
        *(pytest.param(name, wait, id=name) for name, wait in WAITS.items()),
        pytest.param(StageName.TEST, _tasks, id="test of VMs"),
        pytest.param(StageName.IMAGE, _shut_down, id="VM of an image"),
        pytest.param(StageName.RELEASE, _image, id="image in the making"),
        pytest.param(StageName.JOB, _job, id="job that waits"),
        pytest.param(StageName.JOB, _cancelled, id="job that is cancelled"),
        pytest.param(StageName.OBJECTS, _rollout, id="installers on nodes"),
        pytest.param(StageName.TEST, _ray, id="test through Ray"),
    ],
)
def test_a_wait_gives_a_sign_of_life_each_minute_and_says_until_when(
    monkeypatch: pytest.MonkeyPatch, name: StageName, wait: Callable[[Run], None]
) -> None:
    monkeypatch.setattr(release, "_told", lambda _, known: known)
    monkeypatch.setattr(release, "step", lambda _: ["Service default/web"])
    run = Run(monkeypatch)
    with contextlib.suppress(ProvisionError):
        wait(run)
    own = [(when, event) for when, event in run.screen.shown if _stage_of(event) is name]
    moments = [when for when, _ in own]
    assert moments[-1] - moments[0] > MINUTE, "it did not wait"
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert max(gaps) <= MINUTE
    signs = [event for _, event in own if isinstance(event, WaitingEvent) and not event.is_news]
    for sign in signs:
        assert sign.words
        assert sign.most
        assert sign.passed <= sign.most + 1
        (first, *_) = screen.sign_of_life(sign, 100)
        assert f"waits 0:{int(sign.passed) // 60:02}:" in first.text
    # It polls every few seconds, and speaks once a minute.
    assert len(own) <= 3 + 3 * (moments[-1] - moments[0]) / stages_module.SILENCE


def test_a_job_that_says_nothing_is_spoken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    context, jobs = _job_that(run, state=JobState.RUNNING, attempt=1, machines=("vm-1",))
    job = jobs.find("train-1")

    def find(_: str) -> Job:
        if run.time.now > 1_000_000 + LONG:
            raise Interrupted(signal.SIGINT, "stop")
        return cast("Job", job)

    jobs.find = find
    with pytest.raises(Interrupted):
        actions_of_jobs.follow(cast("Any", context), cast("Any", jobs), "train-1")
    assert len(run.waiting) >= LONG // stages_module.SILENCE
    assert {event.words for event in run.waiting} == {"train-1: runs on 1 machine"}
    assert {event.on_interrupt for event in run.waiting} == {OnInterrupt.JOB_GOES_ON}


def test_a_wait_for_a_job_does_not_end_with_what_the_job_still_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    lacks = {"attempt": 1, "machines": (), "why": "Not all pods are ready or succeeded"}
    context, jobs = _job_that(run, state=JobState.RUNNING, **lacks)

    loss = SimpleNamespace(look=lambda _: None)
    actions_of_jobs._await(cast("Any", context), cast("Any", jobs), "train-1", cast("Any", loss))

    ended = [event for _, event in run.screen.shown if isinstance(event, StageEvent)]
    assert ended[-1].stage.words == "train-1: runs"


def test_who_waits_in_googles_queue_is_told_that_the_request_stays_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    with pytest.raises(ProvisionError):
        _requests(run)
    assert {event.on_interrupt for event in run.waiting} == {OnInterrupt.STAYS_QUEUED}
    told = " ".join(line.text.strip() for line in screen.sign_of_life(run.waiting[-1], 100))
    assert "Ctrl-C keeps everything, and the request stays in the queue" in told
    assert run.stages.timeline[-1].state is StageState.WAITING


def test_an_operation_of_googles_is_named_where_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    running = {
        "status": "RUNNING",
        "operationType": "delete",
        "selfLink": "https://google/compute/v1/projects/p/global/operations/o",
    }
    answers = [running] * 100 + [{"status": "DONE"}]
    api = GoogleApi(Credentials("token"), {}, run.progress)
    monkeypatch.setattr(api, "call", lambda *_: answers.pop(0))
    with run.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
        api.delete(Service.COMPUTE, "projects/p/global/networks/np-net")
    assert len(run.waiting) == 100 * 2 // int(stages_module.SILENCE)
    assert run.waiting[0].words == "Google's operation delete on networks/np-net"


def _no_answer(*_: object, **__: object) -> None:
    raise TransientError("503")


def test_what_is_waited_for_between_two_stages_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    monkeypatch.setattr(control_plane, "reach", lambda *_: SimpleNamespace(read=None))
    monkeypatch.setattr(kubernetes_status, "read", _no_answer)
    context: Any = SimpleNamespace(progress=run.progress, environ={}, clock=Clock())
    monkeypatch.setattr(gke_status, "_ANSWER_TIMEOUT", LONG)
    cloud: Any = SimpleNamespace(api=None)
    _, troubles = gke_status._ask(context, cloud, cast("Any", None), None)
    assert len(run.waiting) == LONG // stages_module.SILENCE
    assert {event.words for event in run.waiting} == {"trying to look at the cluster"}
    assert len(troubles) == 1


def test_a_look_at_the_nodes_before_a_test_and_one_at_jobs_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    context: Any = SimpleNamespace(progress=run.progress)
    cluster: Any = SimpleNamespace(all=_no_answer)
    monkeypatch.setattr(gke_testing, "_CHANGING", LONG)
    with pytest.raises(ProvisionError):
        gke_testing._nodes(context, cluster, "p")
    assert {event.words for event in run.waiting} == {"trying to look at the nodes"}

    run.screen.shown.clear()
    monkeypatch.setattr(job_course, "_ANSWER", LONG)
    jobs = object.__new__(GkeJobs)
    jobs._context = context
    with pytest.raises(ProvisionError):
        jobs._ask(_no_answer, "list the jobs")
    assert {event.words for event in run.waiting} == {"trying to list the jobs"}


def test_the_pause_after_all_zones_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    places = (Site("us-central1-a"), Site("us-east4-b"))
    spec = SimpleNamespace(places=places, site=places[0], capacity_timeout=LONG)
    context = SimpleNamespace(
        progress=run.progress, console=SimpleNamespace(progress=lambda _: None)
    )
    of_one = SimpleNamespace(spec=spec)
    unused = cast("Any", None)
    found = search.Search(cast("Any", context), unused, unused, cast("Any", of_one), None)
    found._keep(places[1], CapacityError("none now", code=Code.STOCK_OUT))
    found._pause = LONG
    found._begin_again()
    assert {event.words for event in run.waiting} == {"machines in one of the zones"}
    assert len(run.waiting) == LONG // stages_module.SILENCE


def test_a_sign_of_life_of_a_silent_vm_is_waited_for_with_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    heard = SimpleNamespace(silence=lambda *_: "has not been heard of")
    monkeypatch.setattr(agent, "heard", lambda _: heard)
    monkeypatch.setattr(machines, "look", lambda *_: ())
    monkeypatch.setattr(machines, "run", lambda *_: True)
    monkeypatch.setattr(after_apply, "_HEARING", LONG)
    monkeypatch.setattr(flex_start, "group", lambda _: _group())
    context = SimpleNamespace(progress=run.progress, clock=Clock())
    cloud = SimpleNamespace(api=None)
    vms = {"a": SimpleNamespace(started="")}
    told = {"a": SimpleNamespace(steps=())}
    with pytest.raises(ClusterError, match="a has not been heard of"):
        after_apply.Started(*cast("Any", (context, cloud, None)))._hear(*cast("Any", (vms, told)))
    assert {event.words for event in run.waiting} == {"a sign of life of a"}


def test_a_terraform_that_says_nothing_is_spoken_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    with Applying(run.progress, {StageName.TERRAFORM: 3, StageName.CLUSTER: 1}) as stages:
        stages.feed(b"google_service_account.nodes: Creation complete after 2s [id=x]\n")
        stages.feed(b"google_container_cluster.main: Creating...\n")
        run.time.sleep(600)
    assert len(run.waiting) == 600 // int(stages_module.SILENCE)
    assert {event.stage for event in run.waiting} == {StageName.TERRAFORM}
    assert {event.words for event in run.waiting} == {"1 of 3; at work on container cluster"}
    assert {event.on_interrupt for event in run.waiting} == {OnInterrupt.SAVES}


def test_every_module_that_waits_is_walked_here() -> None:
    waiting_modules = {
        str(path.relative_to(PROVISION))
        for path in PROVISION.rglob("*.py")
        if any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"pause", "retry", "_pause", "sleep"}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert {one for one in waiting_modules if not one.startswith("time/")} == MODULES


def test_each_stage_has_a_title_and_each_end_a_mark() -> None:
    assert set(screen.TITLES) == set(StageName)
    assert set(screen._MARKS) == set(StageState)
    assert set(screen._LEAVES) == set(OnInterrupt)


def test_what_this_machine_works_is_not_multiplied_by_a_rehearsals_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(monkeypatch)
    run.stages.clock = Clock(rate=0.02)
    with run.stages.stage(StageName.PLAN, OnInterrupt.NOTHING):
        run.time.sleep(10)
    run.time.sleep(3)
    with (
        run.stages.stage(StageName.TERRAFORM, OnInterrupt.KEEPS),
        run.stages.stage(StageName.NETWORKS, OnInterrupt.KEEPS),
    ):
        run.time.sleep(6)
    assert [it.seconds for it in run.stages.timeline] == [10, 300, 300]
    assert 19 + run.stages.ahead == 13 + 300
