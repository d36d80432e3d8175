"""What of a cluster's own programs and objects is gone, or does not work."""

import copy
import dataclasses
from typing import Any

import pytest

from provision.documents.status import Trouble
from provision.kinds.gke.kubernetes import kueue, nccl, parts
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.kubernetes.objects import Object, build
from tests.kubernetes import samples
from tests.unit.kinds.cases import having

FACTS = samples.FLEX_QUEUED_ULTRA
CRASHES = {"name": "install", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def _condition(kind: str, status: str, **more: str) -> Object:
    return {"status": {"conditions": [{"type": kind, "status": status, **more}]}}


def _whole(facts: ClusterFacts = FACTS) -> list[Object]:
    """All that Create brings into a cluster, in order."""
    made = [
        build("apps/v1", "Deployment", name, namespace, **_condition("Available", "True"))
        for name, (namespace, _) in parts._MANAGERS.items()
    ]
    made += [
        it | _condition("Active", "True")
        for it in kueue.objects(facts)
        if it["kind"] in {"ClusterQueue", "LocalQueue"}
    ]
    done = {
        "observedGeneration": 1,
        "desiredNumberScheduled": 2,
        "updatedNumberScheduled": 2,
        "numberReady": 2,
    }
    for it in nccl.objects(facts):
        metadata = it["metadata"] | {"generation": 1}
        made.append(it | {"metadata": metadata, "status": dict(done)})
    return copy.deepcopy(made)


def _look(there: list[Object], facts: ClusterFacts = FACTS) -> list[Trouble]:
    def listed(api: str, kind: str, namespace: str = "", _: str = "") -> list[Object]:
        if kind == "Pod":
            return [{"spec": {"nodeName": "n1"}, "status": {"containerStatuses": [CRASHES]}}]
        found = [it for it in there if (it["apiVersion"], it["kind"]) == (api, kind)]
        return [it for it in found if namespace in {"", it["metadata"].get("namespace", "")}]

    cluster: Any = having(all=listed)
    return list(parts.look(cluster, facts))


def test_nothing_is_wrong_with_a_cluster_as_create_made_it() -> None:
    assert _look(_whole()) == []


@pytest.mark.parametrize("number", range(len(_whole())))
def test_each_part_that_somebody_has_deleted_is_named_and_create_makes_it_again(
    number: int,
) -> None:
    there = _whole()
    gone = there.pop(number)
    (fault,) = _look(there)
    assert f"the {gone['kind']} {gone['metadata']['name']} is gone" in fault.what
    assert fault.fix.startswith("run Create")


def test_what_is_there_and_does_not_work_is_told_in_kubernetes_own_words() -> None:
    there = _whole()
    named = {(it["kind"], it["metadata"]["name"]): it for it in there}
    manager = named["Deployment", kueue.MANAGER]
    manager |= _condition("Available", "False", message="Deployment does not have minimum")
    queue = named["ClusterQueue", kueue.CLUSTER_QUEUE]
    queue |= _condition("Active", "False", reason="FlavorNotFound", message="no flavor dws-a")
    installer = next(it for it in there if it["kind"] == "DaemonSet")
    installer["status"]["numberReady"] = 1

    first, second, third = _look(there)
    assert first.what.startswith(f"the Deployment {kueue.MANAGER} is not available: no job starts")
    assert first.why == ("Deployment does not have minimum",)
    assert first.by_itself
    assert second.why == ("FlavorNotFound: no flavor dws-a",)
    assert "is ready on 1 of 2 GPU nodes" in third.what
    assert third.why == ("install on n1: CrashLoopBackOff",)


def test_a_cluster_without_a_queue_needs_none() -> None:
    facts = dataclasses.replace(FACTS, kueue=False)
    there = [it for it in _whole(facts) if it["metadata"]["name"] != kueue.MANAGER]
    assert _look(there, facts) == []
