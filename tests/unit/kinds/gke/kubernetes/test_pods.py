"""Which jobs no queue knows, and what keeps their pods."""

from typing import Any, cast

import pytest

from provision.documents.gke_status import JobState, PodCounts, Workload
from provision.kinds.gke.kubernetes import pods
from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.gke.kubernetes.objects import Object
from tests.table import cases

NODE = {"metadata": {"name": "gke-1", "labels": {"cloud.google.com/gke-nodepool": "np-gpu"}}}


class Things:
    """A cluster with these objects."""

    def __init__(self, *things: Object) -> None:
        self._things = things
        self.fields = ""

    def all(self, _api: str, kind: str, fields: str = "") -> list[Object]:
        self.fields += fields
        return [it for it in self._things if it["kind"] == kind]


def _thing(kind: str, name: str, owner: Object | None = None, **parts: Any) -> Object:
    metadata: Object = {"name": name, "uid": f"uid of {name}", "namespace": "default"}
    metadata |= parts.pop("metadata", {})
    if owner:
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    return {"kind": kind, "metadata": metadata, **parts}


def _pod(
    name: str,
    owner: Object | None = None,
    *conditions: tuple[str, str, str],
    node: str | None = "gke-1",
    gpus: int = 8,
    **status: Any,
) -> Object:
    told = [{"type": kind, "status": holds, "message": it} for kind, holds, it in conditions]
    container = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    return _thing("Pod", name, owner, spec=spec, status={"conditions": told, **status})


READY = ("Ready", "True", "")


def _outside(
    *things: Object, works: tuple[Object, ...] = (), events: tuple[Object, ...] = ()
) -> tuple[Workload, ...]:
    return pods.read(cast("Cluster", Things(*things)), works, [NODE], events)[1]


def test_a_job_in_the_queue_is_known_by_whatever_owns_its_pods() -> None:
    jobset = _thing("JobSet", "train")
    job = _thing("Job", "train-0", jobset)
    work = _thing("Workload", "jobset-train", jobset)
    things = Things(jobset, job, _pod("a", job, READY), _pod("b", job, READY, node=None))
    of_queue, outside = pods.read(cast("Cluster", things), [work], [NODE], [])
    assert outside == ()
    (own,) = of_queue.values()
    assert (own.counts, own.pools) == (PodCounts(waiting=1, ready=1), ("np-gpu",))
    assert "metadata.namespace!=kube-system" in things.fields


@pytest.mark.parametrize("kind", ["Job", "JobSet", "RayJob", "RayCluster"])
def test_a_job_without_a_workload_is_outside_the_queue(kind: str) -> None:
    job = _thing(kind, "by-hand")
    (found,) = _outside(job, _pod("a", job, READY))
    assert (found.name, found.state, found.queue) == (f"{kind} by-hand", JobState.RUNNING, None)
    assert found.pools == ("np-gpu",)
    (unborn,) = _outside(job)
    assert unborn.state is JobState.STARTING


def test_what_has_ended_or_is_part_of_a_job_is_none_and_a_plain_pod_with_gpus_is_one() -> None:
    done = _thing("Job", "done", status={"conditions": [{"type": "Complete", "status": "True"}]})
    ray = _thing("RayJob", "ray", status={"jobDeploymentStatus": "Complete"})
    cluster = _thing("RayCluster", "ray-x", ray)
    system = _thing("Job", "gke", metadata={"namespace": "kube-system"})
    installer = _pod("installer", _thing("DaemonSet", "nccl"), READY)
    plain = _pod("plain", None, READY, gpus=0)
    assert _outside(done, ray, cluster, system, installer, plain) == ()
    replicas = _thing("ReplicaSet", "serve-1a2b")
    found = _outside(
        _pod("debug", None, READY), _pod("serve-1", replicas), _pod("serve-2", replicas, READY)
    )
    assert {it.name: (it.state, it.pods) for it in found} == {
        "Pod debug": (JobState.RUNNING, PodCounts(ready=1)),
        "ReplicaSet serve-1a2b": (JobState.STARTING, PodCounts(starting=1, ready=1)),
    }


def test_a_job_says_in_which_namespace_it_is_and_what_would_let_a_suspended_one_go() -> None:
    job = _thing("Job", "x", metadata={"namespace": "team-a"})
    assert _outside(job)[0].name == "Job x in team-a"
    (found,) = _outside(_thing("Job", "x", spec={"suspend": True}))
    assert found.state is JobState.PENDING
    assert "kueue.x-k8s.io/queue-name: dws-local-queue" in found.advice


def _event(reason: str, message: str, time: str, name: str = "a") -> Object:
    told = {"metadata": {}, "reason": reason, "message": message, "lastTimestamp": time}
    return {**told, "involvedObject": {"uid": f"uid of {name}"}}


def test_pods_without_a_node_say_what_the_scheduler_and_the_autoscaler_say() -> None:
    words = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    job = _thing("Job", "x")
    pending = [_pod(name, job, ("PodScheduled", "False", words), node=None) for name in "ab"]
    events = (
        _event("FailedScaleUp", "at first", "2026-11-22T08:00:00Z"),
        _event("FailedScaleUp", "associated with this pod failed: GCE quota exceeded.", "2026-12"),
        _event("Scheduled", "of no interest", "2026-12"),
    )
    (found,) = _outside(job, *pending, events=events)
    assert found.state is JobState.PENDING
    quota = "FailedScaleUp: associated with this pod failed: GCE quota exceeded."
    assert found.message == f"{words}; {quota}"
    # What Google refuses is why no node comes: other jobs' nodes are not the matter.
    assert found.advice.startswith("request a higher quota")
    (alone,) = _outside(job, *pending)
    assert alone.advice.startswith("no node has so many GPUs free")


def test_pods_on_a_node_say_what_their_containers_wait_for() -> None:
    waits = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    both = (waits, {"reason": "ContainerCreating"})
    statuses = [{"state": {"waiting": it}} for it in both]
    events = (_event("FailedMount", "no such bucket", "2026-12"),)
    (found,) = _outside(_pod("a", None, containerStatuses=statuses), events=events)
    assert found.state is JobState.STARTING
    assert found.message == "ImagePullBackOff: Back-off pulling image; FailedMount: no such bucket"
    assert found.advice.splitlines()[0].startswith("its image can't be pulled")


_NO_IMAGE = (
    'failed to pull and unpack image "i:1": failed to resolve reference "i:1": i:1: not found'
)
BUSY = {
    False: f"""
ErrImagePull rpc error: code = NotFound desc = {_NO_IMAGE}
ImagePullBackOff Back-off pulling image "i:1": ErrImagePull: {_NO_IMAGE}
ErrImagePull failed to fetch oauth token: 403 Forbidden
InvalidImageName couldn't parse image name
""",
    True: """
ImagePullBackOff Back-off pulling image "i"
ErrImagePull Head https://a.b/v2: dial tcp 1.2.3.4:443: i/o timeout
ErrImagePull unexpected status: 503 Service Unavailable
ErrImagePull code = NotFound desc = content digest sha256:0: not found
CreateContainerConfigError secret "a" not found
""",
}


@pytest.mark.parametrize("ever", BUSY)
def test_an_image_is_given_up_where_its_registry_says_no(*, ever: bool) -> None:
    for line in BUSY[ever].strip().splitlines():
        reason, _, message = line.partition(" ")
        waits = {"state": {"waiting": {"reason": reason, "message": message}}}
        pod = {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [waits]}}
        assert (pods.unpullable(pod) == "") is ever, line


def _ignored(type_: str, state: str) -> list[str]:
    """What is told of a pod without a node, whose request is in a state."""
    about = "Unschedulable pod ignored in scale-up loop, because it's consuming ProvisioningRequest"
    event = _event("IgnoredInScaleUp", f"{about} default/one that {state}", "") | {"type": type_}
    unfit = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    condition = {"type": "PodScheduled", "status": "False", "message": unfit}
    pod = {"metadata": {"uid": "uid of a"}, "status": {"conditions": [condition]}}
    return list(pods.hindrances(pod, pods.of_events([event])["uid of a"]))


@cases("""
state                | words
was provisioned.     | its nodes are on their way: the request default/one was provisioned
was accepted.        | it waits for its nodes: the request default/one was accepted
wasn't accepted yet. | it waits for its nodes: the request default/one wasn't accept
""")
def test_a_pod_whose_nodes_are_to_come_waits_and_needs_no_advice(state: str, words: str) -> None:
    (told,) = _ignored("Normal", state)
    assert told.startswith(words)
    assert pods.advice([told]) == []


@cases("""
state                                            | words
was provisioned.                                 | granted ten minutes ago
has an expired booking: the pod arrived too late | is over or never came to be
""")
def test_a_pod_that_its_nodes_came_without_is_told_with_advice(state: str, words: str) -> None:
    told = _ignored("Warning", state)
    assert len(told) == 2
    assert words in "".join(pods.advice(told))


@cases("""
why                                                       | advice
had untolerated taint {cloud.google.com/gke-queued: true} | queue-name
because it's consuming ProvisioningRequest default/x that | submit it again
CrashLoopBackOff: back-off 5m0s                           | kubectl logs --previous
CreateContainerConfigError: secret x not found            | Secret or ConfigMap
2 Insufficient memory.                                    | ask for less
2 node(s) didn't match Pod's node affinity/selector.      | node selector
TriggeredScaleUp: pod triggered scale-up                  | -
""")
def test_what_keeps_a_pod_has_its_advice(why: str, advice: str) -> None:
    found = pods.advice([why, why])
    assert len(found) == bool(advice)
    assert advice in "".join(found)
