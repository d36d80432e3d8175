"""Objects are applied in stages, and NCCL's software is waited for on the nodes there are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.codes import Code
from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import stages
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import build
from provision.kinds.gke.kubernetes.stages import Stage
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress
from provision.time.retries import TransientError
from tests.kubernetes import samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.objects import Object


AT_ONCE = Clock(0)
QUEUE = build("kueue.x-k8s.io/v1beta2", "LocalQueue", "queue", "default")
KIND = build("apiextensions.k8s.io/v1", "CustomResourceDefinition", "queues")


class Answers:
    """A cluster that gives prepared answers, one per request."""

    def __init__(self, *answers: Exception | Object | None) -> None:
        self._answers: Iterator[Exception | Object | None] = iter(answers)
        self.asked: list[str] = []

    def apply(self, thing: Object) -> Object | None:
        return self._next(f"apply {thing['kind']}")

    def find(self, api_version: str, kind: str, name: str, namespace: str) -> Object | None:
        del api_version, name, namespace
        return self._next(f"find {kind}")

    def _next(self, asked: str) -> Object | None:
        self.asked.append(asked)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _apply(cluster: Answers, *things: Object) -> list[str]:
    told: list[str] = []
    changed = stages.apply(
        cast("Cluster", cluster),
        [Stage("nothing"), Stage("the queue", list(things))],
        progress=Progress(AT_ONCE, told.append),
    )
    assert bool(changed) == bool(told)
    return told


def _in_version(thing: Object, version: str) -> Object:
    return {**thing, "metadata": {**thing["metadata"], "resourceVersion": version}}


def test_what_may_go_by_is_tried_again() -> None:
    cluster = Answers(None, TransientError("500 failed calling webhook"), None, QUEUE)
    assert _apply(cluster, QUEUE) == [
        "Kubernetes: the queue (1 of 1 objects changed)",
        "1 objects, 1 of them changed",
    ]
    assert cluster.asked == 2 * ["find LocalQueue", "apply LocalQueue"]


def test_what_is_as_it_should_be_is_no_change_and_not_told() -> None:
    before = _in_version(QUEUE, "7")
    assert _apply(Answers(before, before), QUEUE) == []
    assert len(_apply(Answers(before, _in_version(QUEUE, "8")), QUEUE)) == 2


def test_a_kind_that_is_not_there_yet_is_waited_for() -> None:
    cluster = Answers(None, KubernetesError(404, "no kind", "apply"), None, QUEUE)
    _apply(cluster, QUEUE)
    assert len(cluster.asked) == 4


@pytest.mark.parametrize("code", [400, 403, 409, 422, 500])
def test_a_refusal_is_final_at_its_first_time(code: int) -> None:
    refusal = KubernetesError(code, "field not declared in schema", "apply")
    cluster = Answers(None, refusal, QUEUE)
    with pytest.raises(KubernetesError, match=f"apply \\({code}\\)"):
        _apply(cluster, QUEUE)
    assert len(cluster.asked) == 2


def test_a_stage_waits_until_its_kinds_are_established() -> None:
    def established(holds: str) -> Object:
        return {"status": {"conditions": [{"type": "Established", "status": holds}]}}

    cluster = Answers(None, KIND, {}, established("False"), established("True"))
    _apply(cluster, KIND)
    looks = 3 * ["find CustomResourceDefinition"]
    assert cluster.asked[1:] == ["apply CustomResourceDefinition", *looks]


def test_the_last_hindrance_is_told_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    cluster = Answers(TransientError("503 try again"), QUEUE)
    with pytest.raises(ClusterError) as caught:
        _apply(cluster, QUEUE)
    (problem,) = caught.value.problems
    assert problem.what == "Could not apply LocalQueue queue in time"
    assert problem.why == "503 try again"


FACTS = samples.facts(samples.ULTRA)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.1)


def _at(ready: int, nodes: int = 2, *, updated: int = 2, observed: int = 1) -> dict[str, Any]:
    status = {
        "observedGeneration": observed,
        "desiredNumberScheduled": nodes,
        "numberReady": ready,
        "updatedNumberScheduled": updated,
    }
    return {"metadata": {"generation": 1}, "status": status}


class Looks:
    """A cluster whose DaemonSet gets on from look to look, and stays at the last."""

    def __init__(self, *looks: Any, pods: Iterable[Any] = ()) -> None:
        self._looks = list(looks)
        self._pods = list(pods)
        self.asked = 0

    def find(self, api_version: str, kind: str, name: str, namespace: str) -> Any:
        assert (api_version, kind, namespace) == ("apps/v1", "DaemonSet", "kube-system")
        assert name == "nccl-rdma-installer"
        self.asked += 1
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(found, Exception):
            raise found
        return found

    def all(self, api_version: str, kind: str, namespace: str, selector: str) -> list[Any]:
        assert (kind, namespace, api_version) == ("Pod", "kube-system", "v1")
        assert selector == "k8s-app=nccl-rdma-installer"
        return self._pods


def _wait(cluster: Looks, facts: ClusterFacts = FACTS, timeout: float = 60) -> tuple[Any, Any]:
    told: list[str] = []
    progress = Progress(Clock(0), told.append)
    return stages.wait(cast("Cluster", cluster), facts, progress=progress, timeout=timeout), told


@pytest.mark.parametrize("done", [_at(2), _at(0, 0)])
def test_what_is_there_already_takes_one_look_and_no_words(done: Any) -> None:
    cluster = Looks(done)
    assert _wait(cluster) == ([], [])
    assert cluster.asked == 1


def test_it_is_waited_for_also_where_kubernetes_has_not_looked_or_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Looks(None, TransientError("busy"), _at(2, observed=0), _at(2, updated=1), _at(2))
    monkeypatch.setattr(deadline, "_SHORTEST", 5.0)
    notes, told = _wait(cluster)
    assert notes == []
    assert cluster.asked == 5
    assert "NCCL is installed on the GPU nodes" in told[-1]


def test_a_cluster_without_gpu_networks_is_asked_for_nothing() -> None:
    cluster = Looks(_at(0))
    assert _wait(cluster, dataclasses.replace(FACTS, pools=())) == ([], [])
    assert cluster.asked == 0


def test_a_pool_of_arm_machines_gets_nothing_and_is_told_so() -> None:
    arm = samples.pool_like(samples.ULTRA, name="grace", machine_type="a4x-highgpu-4g")
    cluster = Looks(_at(0))
    (note,), _ = _wait(cluster, dataclasses.replace(FACTS, pools=(arm,)))
    assert note.what.endswith("the nodes of grace (a4x-highgpu-4g)")
    assert cluster.asked == 0


def test_what_is_slow_is_a_note() -> None:
    slow = {"status": {"initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}}
    (note,), _ = _wait(Looks(_at(1), pods=[slow]), timeout=0)
    assert note.code is Code.STILL_RUNNING
    assert "nccl-rdma-installer is ready on 1 of 2 GPU nodes" in note.what
    assert "kubectl --namespace kube-system describe pods" in note.fix


def test_what_goes_wrong_fails_with_its_reason() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    pod = {
        "spec": {"nodeName": "node-1"},
        "status": {"initContainerStatuses": [{"name": "i", "state": {"waiting": waiting}}]},
    }
    with pytest.raises(ClusterError) as caught:
        _wait(Looks(_at(1), pods=[pod]), timeout=0)
    (problem,) = caught.value.problems
    assert problem.code is Code.KUBERNETES_FAILED
    assert "1 of 2 GPU nodes" in problem.what
    assert problem.why == "i on node-1: ImagePullBackOff: not found"
    assert "Create again" in problem.fix
