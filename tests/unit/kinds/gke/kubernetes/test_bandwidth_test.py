from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.kinds.gke.kubernetes import bandwidth_test
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress
from tests.kubernetes import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.kinds.gke.kubernetes.bandwidth_test import Ran
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

LOG = (Path(__file__).parent / "a3-ultra-all-gather.log").read_text(encoding="utf-8")
INDEX = "batch.kubernetes.io/job-completion-index"
WAITING = {"type": "QuotaReserved", "status": "True"}
GIVEN_UP = {
    "type": "Evicted",
    "status": "True",
    "message": 'The workload is deactivated due to AdmissionCheck in Rejected state: "dws-prov"'
    " (Could not enqueue the Provisioning Request due to insufficient capacity in zone"
    " us-central1-a. Try different locations or hardware.)",
}


class Nodes:
    """A cluster whose nodes come after some looks, or not at all."""

    def __init__(
        self,
        *,
        looks: int = 2,
        condition: str = "Completed",
        active: bool = True,
        queued: bool = True,
    ) -> None:
        self._looks, self._condition, self._active = looks, condition, active
        self._queued = queued
        self.there = True  # a test that an earlier run left
        self.submitted: list[Object] = []

    def apply(self, thing: Object) -> Object:
        assert not self.there
        self.there = True
        self.submitted.append(thing)
        return thing

    def delete(self, *_: str) -> bool:
        was, self.there = self.there, False
        return was

    def all(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
    ) -> list[Object]:
        del api_version, namespace, fields
        if kind == "Workload" and not self._queued:
            return []
        if kind == "Event":
            return [_event("pod-of-before", "9"), _event("pod", "2"), _event("pod", "1")]
        if kind == "Workload":
            owner = [{"kind": "JobSet", "name": bandwidth_test.NAME}]
            metadata = {"name": "work", "ownerReferences": owner}
            status = {"conditions": [WAITING, *([] if self._active else [GIVEN_UP])]}
            return [{"metadata": metadata, "spec": {"active": self._active}, "status": status}]
        if kind == "ProvisioningRequest":
            lacking = {"type": "Provisioned", "status": "False", "reason": "QuotaExceeded"}
            lacking["message"] = "Quota 'NVIDIA_H200_GPUS' exceeded.  Limit: 8.0 in region r-1."
            name = f"jobset-{bandwidth_test.NAME}-1a2b3-dws-prov-4"
            return [{"metadata": {"name": name}, "status": {"conditions": [lacking]}}]
        if kind != "Pod" or not self.there:
            return []
        self._looks -= "index" in selector
        phase = "Running" if self._looks < 0 else "Pending"
        return [
            {
                "metadata": {"name": f"pod-{number}", "uid": "pod", "labels": {INDEX: str(number)}},
                "spec": {"nodeName": f"node-{number}"},
                "status": {"phase": phase},
            }
            for number in (1, 0)
        ]

    def find(self, *_: str) -> Object:
        return {"status": {"conditions": [{"type": self._condition, "status": "True"}]}}

    def log(self, namespace: str, pod: str, container: str) -> str:
        assert (namespace, container) == ("default", "nccl")
        return LOG if pod == "pod-0" else "of the other one"


def _event(uid: str, time: str) -> Object:
    return {
        "reason": "FailedScaleUp",
        "message": f"no nodes at {time}",
        "lastTimestamp": time,
        "involvedObject": {"uid": uid},
    }


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.3)


def _run(cluster: Nodes, tell: Callable[[str], None] = lambda _: None) -> Ran:
    return bandwidth_test.run(
        cast("Cluster", cluster),
        samples.FLEX_QUEUED_ULTRA,
        samples.ULTRA,
        2,
        timeout=0,
        progress=Progress(Clock(0), tell),
    )


def test_the_test_waits_for_its_nodes_and_leaves_nothing() -> None:
    cluster, told = Nodes(), list[str]()
    ran = _run(cluster, told.append)
    assert (ran.nodes, ran.logs) == (("node-0", "node-1"), (LOG, "of the other one"))
    assert told == [
        "2 nodes of demo-h200: waiting for nodes",
        "2 nodes of demo-h200",
        "The bandwidth test is running on 2 nodes of demo-h200",
    ]
    (submitted,) = cluster.submitted
    assert submitted["metadata"]["name"] == bandwidth_test.NAME
    assert "generateName" not in submitted["metadata"]
    assert not cluster.there


def test_a_test_that_fails_still_gives_its_log() -> None:
    assert _run(Nodes(condition="Failed")).logs[0] == LOG


def test_nodes_that_do_not_come_in_time_leave_no_test_behind() -> None:
    cluster = Nodes(looks=1000)
    with pytest.raises(StillWaiting, match="waiting for nodes") as caught:
        _run(cluster)
    assert not cluster.there
    # A request that waits for quota waits for ever: what helps is said before "try again".
    first, last = caught.value.problems[0].fix.splitlines()
    assert "request a higher quota NVIDIA_H200_GPUS of r-1, now 8" in first
    assert last == "run Test again later, or raise CAPACITY_TIMEOUT"


def test_without_a_queue_the_autoscalers_last_words_on_these_pods_are_told() -> None:
    with pytest.raises(StillWaiting, match="no nodes yet") as caught:
        _run(Nodes(looks=1000, queued=False))
    assert caught.value.problems[0].why == "no nodes at 2"


def test_a_request_that_failed_for_good_says_what_to_do() -> None:
    cluster = Nodes(looks=1000, active=False)
    with pytest.raises(CapacityError) as caught:
        _run(cluster)
    (problem,) = caught.value.problems
    assert problem.why == GIVEN_UP["message"]
    assert "another zone" in problem.fix
    assert not cluster.there


def test_a_test_that_does_not_end_shows_the_end_of_its_log() -> None:
    with pytest.raises(ClusterError) as caught:
        _run(Nodes(condition="Startup"))
    assert caught.value.problems[0].why.endswith("120.248")
