"""What keeps a pod from running, and what fixes it.

The words are those of Kubernetes' scheduler and kubelet (1.34), of the autoscaler's published
source (2026-08-21), and of the events that GKE's autoscaler writes for pods that get no node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import kueue, reasons
from provision.kinds.gke.kubernetes.objects import conditions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.kinds.gke.kubernetes.objects import Object

_TELLING: Final = frozenset(
    {
        "FailedScaleUp",
        "NotTriggerScaleUp",
        "TriggeredScaleUp",
        "MissingProvisioningRequest",
        "IgnoredInScaleUp",
        "FailedProvisioningRequest",
    }
)
"""The reasons of the autoscaler's events about a pod without a node."""
_UNDER_WAY: Final = re.compile(
    r"consuming ProvisioningRequest (?P<name>\S+) that"
    r" (?P<state>was provisioned|was accepted|wasn't accepted yet)"
)
"""What a usual event says of the request of a pod whose nodes are still to come.

The autoscaler's published source, 2026-08-21, with a warning from ten minutes after the grant on;
the ends of its sentences are believed.
"""
_COMING: Final = "its nodes are on their way"
_ASKED: Final = "it waits for its nodes"
_ON_NODE: Final = frozenset(
    {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady"}
)
"""The reasons of the kubelet's events about a pod that can't start."""
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})

# A registry that does not answer, or is busy, is asked again, and so is one that has the image and
# lost a part of it on the way. The words are containerd's, as transcripts of 2026 show them for a
# name that is not there; those of a refusal are believed (2026-11-24).
_NEVER_PULLED: Final = re.compile(
    r"InvalidImageName|ErrImageNeverPull|(?:ErrImagePull|ImagePullBackOff): .*"
    r"(?:failed to resolve reference .*: not found|40[13] (?:Unauthorized|Forbidden))",
    re.DOTALL,
)

# What is said of a pod -> what fixes it; the first that fits counts.
_ADVICE: Final = (
    (
        r"cloud\.google\.com/gke-queued",
        (
            "nodes of queued pools are for jobs of the queue: give the job the label"
            f" {kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}"
        ),
    ),
    (
        r"consuming ProvisioningRequest \S+ that was provisioned",
        (
            "its nodes were granted ten minutes ago, and it runs on none: compare node selector,"
            " tolerations and GPUs with the pool's, or delete the job and submit it again"
        ),
    ),
    (
        r"consuming ProvisioningRequest",
        "the request for its nodes is over or never came to be: delete the job and submit it again",
    ),
    (
        r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull",
        "its image can't be pulled: correct the name, or let the nodes' service account read it",
    ),
    (
        r"CreateContainerConfigError",
        "it names a Secret or ConfigMap that its namespace does not have",
    ),
    (
        r"CrashLoopBackOff|RunContainerError|CreateContainerError",
        "its program does not stay up: see kubectl logs --previous",
    ),
    (
        r"FailedMount|FailedAttachVolume",
        (
            "a volume can't be mounted: see that its claim and bucket or share exist, and that the"
            " pod's service account may use them"
        ),
    ),
    (
        r"Insufficient nvidia\.com/gpu",
        (
            "no node has so many GPUs free: wait until other jobs end, ask for fewer in one pod, or"
            " raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)"
        ),
    ),
    (
        r"Insufficient (?:cpu|memory|ephemeral-storage)",
        "it asks for more CPUs, memory or storage than nodes have free: ask for less",
    ),
    (
        # Kubernetes' scheduler (1.34.2, tried) does not always name the taint.
        r"affinity/selector|untolerated taint",
        (
            "no node has the labels that it selects by and lets it on: compare its node selector"
            " and tolerations with the pool's; queued pools take jobs of the queue alone, with the"
            f" label {kueue.QUEUE_LABEL}: {kueue.LOCAL_QUEUE}"
        ),
    ),
)


def said(events: Iterable[Object]) -> dict[str, list[str]]:
    """The UID of a pod -> what the last event of each telling reason says of it."""
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for event in events:
        reason = str(event.get("reason"))
        if reason in _TELLING | _ON_NODE:
            about = str(event["involvedObject"].get("uid")), reason
            text = f"{reason}: {event.get('message')}"
            if event.get("type") == "Normal":
                text = _under_way(text)
            last[about] = max(last.get(about, ("", "")), (moment(event), text))
    found: dict[str, list[str]] = {}
    for (uid, _), (_, text) in last.items():
        found.setdefault(uid, []).append(text)
    return found


def _under_way(text: str) -> str:
    """What the autoscaler says of a pod whose request goes on, in fewer words."""
    request = _UNDER_WAY.search(text)
    if request is None:
        return text
    so_far = _COMING if request["state"] == "was provisioned" else _ASKED
    return f"{so_far}: the request {request['name']} {request['state']}"


def moment(event: Object) -> str:
    """When an event was, in RFC 3339 format; "" if it does not say."""
    times = ("eventTime", "lastTimestamp", "firstTimestamp")
    found = next((event[name] for name in times if event.get(name)), None)
    return str(found or event["metadata"].get("creationTimestamp", ""))


def of(pod: Object, events: Sequence[str]) -> Iterator[str]:
    """What keeps a pod from running."""
    if not (pod.get("spec") or {}).get("nodeName"):
        message = conditions(pod).get("PodScheduled", {}).get("message")
        # That no node of now takes it says nothing where its own are still to come.
        if message and not any(one.startswith((_COMING, _ASKED)) for one in events):
            yield str(message)
        yield from events
        return
    status = pod.get("status") or {}
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(name) or []:
            waits = (container.get("state") or {}).get("waiting") or {}
            if waits.get("reason") and waits["reason"] not in _USUAL:
                yield ": ".join(filter(None, [waits["reason"], waits.get("message")]))
    yield from (one for one in events if one.partition(":")[0] in _ON_NODE)


def unpullable(pod: Object) -> str:
    """Why a pod's image can't ever be pulled, in the kubelet's words; "" if it may be."""
    return next((one for one in of(pod, ()) if _NEVER_PULLED.match(one)), "")


def ended(pod: Object) -> Iterator[str]:
    """With what a pod has failed: the kubelet's words, or a code and the end of a log."""
    status = pod.get("status") or {}
    if status.get("message"):
        yield f"{status.get('reason', 'Failed')}: {str(status['message']).strip()}"
        return
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(name) or []:
            found = (container.get("state") or {}).get("terminated") or {}
            if found.get("exitCode"):
                last = str(found.get("message") or "").strip().rpartition("\n")[2]
                code = f"{container.get('name', '')} ended with exit code {found['exitCode']}"
                yield ": ".join(filter(None, [code, last]))


def advice(why: Iterable[str]) -> list[str]:
    """What to do about what keeps pods; [] for nothing but to wait.

    `why`: all that is said of them. What Google refuses goes before what the scheduler says of the
    nodes that are there.
    """
    told = list(why)
    refused = dict.fromkeys(filter(None, (reasons.advice("", one) for one in told)))
    return list(refused or dict.fromkeys(filter(None, map(_advice, told))))


def _advice(why: str) -> str:
    return next((text for words, text in _ADVICE if re.search(words, why)), "")
