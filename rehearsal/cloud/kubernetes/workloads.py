"""Kueue's Workloads: one for each job in a queue, and how the job is started and stopped."""

import copy
import hashlib
from collections.abc import Iterator
from typing import Final

from rehearsal.cloud.kubernetes import admission, jobs, objects, queues
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

_PASSED_ON: Final = "provreq.kueue.x-k8s.io/"
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_MOST_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_HASH: Final = 5


def every(world: World, kind: Kind) -> list[queues.Entry]:
    """The jobs in queues with their Workloads, which are made if missing; the most urgent first."""
    entries = list(_entries(world, kind))
    entries.sort(key=lambda it: (-it.workload["spec"]["priority"], it.workload["_number"]))
    return entries


def _entries(world: World, kind: Kind) -> Iterator[queues.Entry]:
    for version, plural in jobs.VERSIONS.values():
        of_jobs = world.kind(version, plural)
        for job in world.each(of_jobs) if of_jobs else ():
            if of_jobs is None or not admission.is_queued(job):
                continue
            name, namespace = _name(job), job["metadata"]["namespace"]
            workload = world.get(kind, namespace, name) or world.put(
                kind, _made(world, job, name, namespace)
            )
            yield queues.Entry(of_jobs, job, workload)


def _name(job: Object) -> str:
    """As Kueue names them: kind, name and a digest."""
    kind, metadata = job["kind"], job["metadata"]
    group = job["apiVersion"].rpartition("/")[0]
    text = "\n".join((kind, group, metadata["name"], metadata["uid"]))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    return f"{kind.lower()}-{metadata['name']}-{digest}"


def _made(world: World, job: Object, name: str, namespace: str) -> Object:
    own = job["metadata"]
    given = own.get("annotations") or {}
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "labels": {"kueue.x-k8s.io/job-uid": own["uid"]},
        "ownerReferences": [objects.owner(job)],
        "annotations": {key: it for key, it in given.items() if key.startswith(_PASSED_ON)},
    }
    sets = [
        {
            "name": it.name,
            "count": it.count,
            "template": copy.deepcopy(it.template),
            **({} if it.least is None else {"minCount": it.least}),
        }
        for it in jobs.pod_sets(job)
    ]
    spec: Object = {
        "active": True,
        "podSets": sets,
        "priority": _priority(world, own["labels"].get(_PRIORITY, "")),
        "queueName": own["labels"][admission.QUEUE],
    }
    if _MOST_SECONDS in own["labels"]:
        spec["maximumExecutionTimeSeconds"] = int(own["labels"][_MOST_SECONDS])
    number = int(world.version())
    thing = {"apiVersion": queues.API, "kind": "Workload", "metadata": metadata, "spec": spec}
    return {**thing, "_number": number}


def _priority(world: World, name: str) -> int:
    found = queues.find(world, "workloadpriorityclasses", name)
    return int(found["value"]) if found else 0


def start(world: World, entry: queues.Entry) -> None:
    """Let the job of an admitted workload run, on the nodes of its flavors."""
    status = entry.workload["status"]
    updates: dict[str, Object] = {}
    for check in status.get("admissionChecks") or []:
        for update in check.get("podSetUpdates") or []:
            updates[update["name"]] = update
    assigned = {it["name"]: it for it in status["admission"]["podSetAssignments"]}
    for pods in jobs.pod_sets(entry.job):
        template = pods.template
        spec = template.setdefault("spec", {})
        for flavor in dict.fromkeys(assigned[pods.name]["flavors"].values()):
            _add_flavor(world, spec, flavor)
        update = updates.get(pods.name, {})
        if update.get("annotations"):
            metadata = template.setdefault("metadata", {})
            metadata.setdefault("annotations", {}).update(update["annotations"])
        if update.get("nodeSelector"):
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **update["nodeSelector"]}
        if pods.least is not None:
            entry.job["spec"]["parallelism"] = assigned[pods.name]["count"]
    entry.job["spec"]["suspend"] = False
    world.put(entry.kind, entry.job)


def _add_flavor(world: World, spec: Object, name: str) -> None:
    flavor = (queues.find(world, "resourceflavors", name) or {}).get("spec") or {}
    if flavor.get("nodeLabels"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **flavor["nodeLabels"]}
    if flavor.get("tolerations"):
        spec["tolerations"] = [*(spec.get("tolerations") or []), *flavor["tolerations"]]


def stop(world: World, entry: queues.Entry) -> None:
    """Suspend a job, as it was before it was started."""
    if entry.job["spec"].get("suspend"):
        return
    before = {it["name"]: it for it in entry.workload["spec"]["podSets"]}
    for pods in jobs.pod_sets(entry.job):
        pods.template.clear()
        pods.template.update(copy.deepcopy(before[pods.name]["template"]))
        if pods.least is not None:
            entry.job["spec"]["parallelism"] = before[pods.name]["count"]
    entry.job["spec"]["suspend"] = True
    world.put(entry.kind, entry.job)
