"""The pods of a job of Run: the rank of each, why its program failed or can't begin, the way in."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.deployment.kind import WayIn, shell
from provision.documents import json_object
from provision.documents.job import Job, JobFailure
from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import kueue, pods, run_jobs
from provision.kinds.gke.kubernetes.fabric_pods import RANK_LABEL
from provision.kinds.gke.kubernetes.objects import Object, conditions, labels
from provision.kinds.gke.kubernetes.run_jobs import FOLDER, KEEPER
from provision.kinds.job_folder import TO_A_MOUNT, failure
from provision.state import objects
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from provision.state.folder import StateFolder

_SAID: Final = {
    "CUDA out of memory": "a GPU ran out of memory",
    "torch.OutOfMemoryError": "a GPU ran out of memory",
    "No space left on device": "a disk is full",
}
"""The last words of a program that tell of a reason, as VMs read them, too (aiinfra_vm/job.py)."""
LOST: Final = "its node was lost, or drained"
END: Final = Stored("pods/jobs/{}/ends/{}/{}.json", Writer.MACHINES, objects.said)
"""How the program of a rank, or task, ended in an attempt, as its pod has kept it."""
_POD: Final = re.compile(r"\S*-(\d+)-[a-z0-9]{5}(?= |$)")
"""A pod's name, with its rank, in the words of Kubernetes."""
_NOT_FOUND: Final = 127  # a shell's exit code


def rank(pod: Object) -> int:
    """The rank of a pod in its job; that of Ray's head, too, and the number of a task."""
    first, before = run_jobs.numbers(pod)
    return int(labels(pod).get(RANK_LABEL, "0")) - before + first


def is_placeholder(pod: Object) -> bool:
    """Whether a pod of a job of tasks has none of them."""
    return rank(pod) < run_jobs.numbers(pod)[0]


def cause(end: Mapping[str, Any], pod: Object | None) -> str:
    """What is known of the reason why a program ended so; "" for nothing."""
    of_pod = (pod or {}).get("status") or {}
    if of_pod.get("reason"):  # evicted
        return f"{of_pod['reason']}: {of_pod.get('message', '')}"
    for container in of_pod.get("containerStatuses") or []:
        ended = (container.get("state") or {}).get("terminated") or {}
        if container["name"] == run_jobs.CONTAINER and ended.get("reason") == "OOMKilled":
            return "out of memory"
    tail = json_object.text(end.get("tail"))
    if said := next((cause for words, cause in _SAID.items() if words in tail), ""):
        return said
    if end.get("code") is None:
        return "it was killed: out of memory, or with its node"
    return "command not found" if end.get("code") == _NOT_FOUND else ""


def stuck(pod: Object) -> JobFailure | None:
    """What keeps the program of a pod from ever beginning, while it holds a node."""
    why = pods.unpullable(pod)
    cause = f"its image can't be pulled: {why.rpartition(' desc = ')[2]}"
    return _failed(pod, cause, why) if why else None


def unbegun(pod: Object) -> JobFailure | None:
    """What kept the program of a pod from beginning."""
    for container in (pod.get("status") or {}).get("initContainerStatuses") or []:
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            message = str(ended.get("message") or "")
            lines = message.strip().splitlines()
            said = lines[-1] if lines else "it said nothing"
            return _failed(pod, f"{container['name']} failed: {said}", message)
    return None


def _failed(pod: Object, cause: str, tail: str, number: int | None = None) -> JobFailure:
    node, number = pod["spec"].get("nodeName", ""), rank(pod) if number is None else number
    return JobFailure(machine=node, rank=number, cause=cause, tail=tail)


def begun_again(folder: StateFolder, job: Job, own: Iterable[Object]) -> int:
    """How often the task of a job was begun again that was so most often."""
    ended = itertools.takewhile(
        lambda it: folder.names(END, job.name, str(it)), range(1, job.restarts + 2)
    )
    annotated = (it["metadata"].get("annotations") or {} for it in own)
    counts = (str(it.get(run_jobs.FAILURES, "")) for it in annotated)
    return max(len(list(ended)) - 1, 0, *(int(it) for it in counts if it.isdecimal()))


def first_task(
    folder: StateFolder, job: Job, failed: Collection[int], own: Sequence[Object]
) -> JobFailure | None:
    """What made the task fail that was the first to fail for good."""
    last: dict[int, tuple[float, int]] = {}
    for attempt in range(1, job.restarts + 2):
        ends = folder.created(END, job.name, str(attempt))
        last |= {int(it): (ends[it], attempt) for it in ends if it.isdecimal()}
    number = min(failed, key=lambda it: last.get(it, (math.inf, it)))
    pod = next((it for it in own[::-1] if rank(it) == number), None)
    at = str(last[number][1]) if number in last else "0"
    end = folder.read(END, job.name, at, str(number))
    if end:
        return failure({**end, "cause": cause(end, pod)})
    if pod and (why := unbegun(pod)):
        return why
    reason = ((pod or {}).get("status") or {}).get("reason") or LOST
    return _failed(pod or {"spec": {}, "metadata": {}}, reason, "", number)


def first_failure(
    own: Sequence[Object], ends: Iterable[Mapping[str, Any]], made: Callable[[], Iterable[Object]]
) -> JobFailure | None:
    """What failed first in an attempt that has ended; `made`: gets the Jobs of the last attempt."""
    of_rank = {rank(it): it for it in own[::-1]}
    failed = [it for it in ends if it.get("code") != 0 and it.get("told") is not True]
    if failed:
        end = min(failed, key=lambda it: json_object.number(it.get("ended")) or 0.0)
        why = cause(end, of_rank.get(json_object.whole(end.get("rank")) or 0))
        return failure({**end, "cause": why})
    if found := next(filter(None, map(unbegun, of_rank.values())), None):
        return found
    # They say which pod ended it.
    for child in made():
        message = str(conditions(child).get("Failed", {}).get("message", ""))
        if pod := _POD.search(message):
            node = (of_rank.get(int(pod[1])) or {}).get("spec", {}).get("nodeName", "") or pod[0]
            why = LOST if "DisruptionTarget" in message else message
            return JobFailure(machine=node, rank=int(pod[1]), cause=why, tail="")
    return None


def way_in(
    found: Iterable[Object],
    job: Job,
    number: int,
    before: str,
    access: Callable[[], AbstractContextManager[Mapping[str, str]]],
) -> WayIn:
    """The way into the pod of this rank that runs.

    Files come from beside the program: its image may have no tar.

    Raises:
        ClusterError: There is none.
    """
    heads = (it for it in found if labels(it).get("ray.io/node-type") != "worker")
    stay = (it for it in heads if rank(it) == number and "deletionTimestamp" not in it["metadata"])
    pod = next((it for it in stay if (it.get("status") or {}).get("phase") == "Running"), None)
    if pod is None:
        raise ClusterError(
            f"The pod of {'task' if job.tasks else 'rank'} {number} of {job.name} does not run:"
            f" the job is {job.state}",
            code=Code.MACHINES_GONE,
            why="what a program writes to its folder goes with its pod; on Ray, the head's alone is"
            " rank 0",
            fix=TO_A_MOUNT,
        )
    name, program = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
    begin, behind = ("kubectl", "exec"), (name, "--namespace", kueue.NAMESPACE, "--container")
    return WayIn(
        where=name,
        folder=FOLDER,
        tells=(*begin, *behind, KEEPER, "--", "sh", "-c"),
        opens=(*begin, "-it", *behind, program, "--", *shell(FOLDER)),
        before=before,
        forwards=lambda port: f"kubectl port-forward {name} --namespace {kueue.NAMESPACE} {port}",
        access=access,
    )
