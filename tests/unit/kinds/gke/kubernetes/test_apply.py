from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import apply
from provision.kinds.gke.kubernetes.apply import Stage
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import build
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.kinds.gke.kubernetes.client import Cluster
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
    changed = apply.apply(
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
