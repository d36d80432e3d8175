"""RayClusters and RayJobs, as KubeRay's operator runs them.

Source: KubeRay v1.6.2, ray-operator/controllers/ray/rayjob_controller.go.
"""

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud.kubernetes import jobs, objects, pod_jobs, pods, programs
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

_API: Final = "ray.io/v1"
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where systems have it
_OLD: Final = "old-ray"
_FAILED: Final = "Job entrypoint command failed with exit code {code}, last available logs"
_LATE: Final = "The RayJob has passed the activeDeadlineSeconds."
_LOST: Final = (
    "Job submission has failed. Reason: BackoffLimitExceeded. Message: Job has reached the"
    " specified backoff limit"
)
_RESET: Final = (
    *("jobId", "jobStatus", "message", "rayClusterName", "rayClusterStatus", "reason"),
    *("endTime", "startTime"),
)
"""What a RayJob forgets of an attempt before the next one."""


def look(world: World) -> None:
    """Let jobs make clusters, and clusters make pods."""
    _define(world)
    of_jobs, of_clusters = (world.kind(*jobs.VERSIONS[it]) for it in ("RayJob", "RayCluster"))
    if of_jobs is None or of_clusters is None:
        return
    for job in world.each(of_jobs):
        _look_at_job(world, of_clusters, job)
        world.put(of_jobs, job)
    for cluster in world.each(of_clusters):
        _look_at_cluster(world, cluster)
        world.put(of_clusters, cluster)


def _define(world: World) -> None:
    """Let the add-on's kind of clusters say whether it knows tokens, as KubeRay's 1.6.2 does."""
    kind = world.own("apiextensions.k8s.io/v1", "customresourcedefinitions")
    added = world.kind(*jobs.VERSIONS["RayCluster"])
    name = "rayclusters.ray.io"
    if added is None or world.get(kind, "", name) is not None:
        return
    options = {"type": "object", "properties": {"mode": {"type": "string"}}}
    open_to_all = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    known = {} if _OLD in world.request.scenarios else {"authOptions": options}
    of_spec = {**open_to_all, "properties": known}
    schema = {"openAPIV3Schema": {**open_to_all, "properties": {"spec": of_spec}}}
    names = {"kind": "RayCluster", "plural": "rayclusters"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "ray.io", "names": names, "scope": "Namespaced", "versions": versions}
    thing = {"apiVersion": kind.version, "kind": kind.name, "metadata": {"name": name}}
    world.put(kind, {**thing, "spec": spec})


def _look_at_cluster(world: World, cluster: Object) -> None:
    status = cluster.setdefault("status", {})
    own = pods.of(world, cluster)
    if cluster["spec"].get("suspend"):
        for pod in own:
            pods.stop(world, pod)
        status["state"] = "suspended"
        return
    wanted = jobs.pod_sets(cluster)
    name = cluster["metadata"]["name"]
    for it in wanted:
        there = [pod for pod in own if pod["metadata"]["labels"]["ray.io/group"] == it.group]
        for number in range(len(there), it.count):
            labels = {
                "ray.io/cluster": name,
                "ray.io/node-type": "head" if it.is_head else "worker",
                "ray.io/group": it.group,
            }
            prefix = f"{name}-head" if it.is_head else f"{name}-{it.group}-worker-{number}"
            template = _with_shared_memory(it.template)
            pods.make(world, cluster, prefix, template, labels=labels, seconds=pods.FOREVER)
    running = [pod for pod in own if pod["status"]["phase"] == "Running"]
    workers = sum(it.count for it in wanted if not it.is_head)
    status |= {
        "desiredWorkerReplicas": workers,
        "readyWorkerReplicas": sum(
            pod["metadata"]["labels"]["ray.io/node-type"] == "worker" for pod in running
        ),
    }
    if len(running) >= workers + 1:
        status["state"] = "ready"
        words = "All Ray Pods are ready for the first time"
        objects.tell(world, cluster, "RayClusterProvisioned", True, "AllPodRunningAndReady", words)
    elif status.get("state") == "suspended":
        # KubeRay never takes "ready" back, whatever it loses (its source of 1.6.2).
        status.pop("state", None)


def _with_shared_memory(template: Mapping[str, Any]) -> Object:
    """What KubeRay makes of a pod that mounts no /dev/shm: it gets one as large as its memory.

    Source: KubeRay feeaf72fa, ray-operator/controllers/ray/common/pod.go.
    """
    made = copy.deepcopy(dict(template))
    spec = made.get("spec") or {}
    container: Object = next(iter(spec.get("containers") or []), {})
    mounts = container.get("volumeMounts") or []
    if not container or any(it["mountPath"] == _SHARED_MEMORY for it in mounts):
        return made
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    volume: Object = {"medium": "Memory", **({"sizeLimit": limit} if limit else {})}
    mount = {"name": "shared-mem", "mountPath": _SHARED_MEMORY}
    container["volumeMounts"] = [*mounts, mount]
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": "shared-mem", "emptyDir": volume}]
    return made


def _look_at_job(world: World, of_clusters: Kind, job: Object) -> None:
    status = job.setdefault("status", {})
    name, namespace = status.get("rayClusterName", ""), job["metadata"]["namespace"]
    cluster = world.get(of_clusters, namespace, name) if name else None
    if status.get("jobDeploymentStatus") in jobs.RAY_ENDS:
        _forget(world, of_clusters, job, cluster)
        return
    if job["spec"].get("suspend"):
        _take_down(world, of_clusters, job, cluster)
        status["jobDeploymentStatus"] = "Suspended"
        return
    if not name:
        name = f"{job['metadata']['name']}-{_digest(world, job)}"
        own = job["spec"].get("jobId") or f"{name}-job"
        status |= {"rayClusterName": name, "startTime": world.stamp, "jobId": own}
        status["jobDeploymentStatus"] = "Initializing"
        job["_begun"] = world.now
    if _is_late(world, job):
        _fail(world, of_clusters, job, cluster, "DeadlineExceeded", _LATE)
        return
    if cluster is None:
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {"ray.io/originated-from-cr-name": job["metadata"]["name"]},
            "ownerReferences": [objects.owner(job)],
        }
        spec = copy.deepcopy(job["spec"].get("rayClusterSpec") or {})
        thing = {"apiVersion": _API, "kind": "RayCluster", "metadata": metadata, "spec": spec}
        world.put(of_clusters, thing)
    else:
        status["rayClusterStatus"] = copy.deepcopy(cluster.get("status") or {})
        if status["rayClusterStatus"].get("state") == "ready":
            _submit(world, of_clusters, job, cluster)


def _is_late(world: World, job: Object) -> bool:
    """Whether an attempt takes longer than a job says; each has the time anew."""
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or not world.request.rate:
        return False
    moment = job["_begun"] + limit * world.request.rate
    world.wake(moment)
    return bool(moment <= world.now)


def _fail(  # noqa: PLR0913, PLR0917 - what there is, and why
    world: World, of_clusters: Kind, job: Object, cluster: Object | None, reason: str, message: str
) -> None:
    """End an attempt; another one begins on a cluster of its own, if there is to be one."""
    status = job["status"]
    status["failed"] = int(status.get("failed", 0)) + 1
    again = status["failed"] <= int(job["spec"].get("backoffLimit") or 0)
    if again and reason != "DeadlineExceeded":
        _take_down(world, of_clusters, job, cluster)
        status["jobDeploymentStatus"] = ""
        return
    status |= {"jobDeploymentStatus": "Failed", "reason": reason, "message": message}
    _end(world, of_clusters, job, cluster)


def _end(world: World, of_clusters: Kind, job: Object, cluster: Object | None) -> None:
    job["status"]["endTime"], job["_ended"] = world.stamp, world.now
    _forget(world, of_clusters, job, cluster)


def _forget(world: World, of_clusters: Kind, job: Object, cluster: Object | None) -> None:
    """Take down the cluster of a job that is over, when it has been kept for as long as it says."""
    spec = job["spec"]
    if cluster is None or not spec.get("shutdownAfterJobFinishes"):
        return
    kept = int(spec.get("ttlSecondsAfterFinished") or 0) * world.request.rate
    world.wake(job["_ended"] + kept)
    if job["_ended"] + kept <= world.now:
        _stop(world, of_clusters, cluster)


def _stop(world: World, of_clusters: Kind, cluster: Object) -> None:
    for pod in pods.of(world, cluster):
        pods.stop(world, pod)
    world.remove(of_clusters, cluster)


def _take_down(world: World, of_clusters: Kind, job: Object, cluster: Object | None) -> None:
    """Take down what a job has; it begins again when it is resumed."""
    if cluster is not None:
        _stop(world, of_clusters, cluster)
    for submitter in jobs.children(world, job):
        world.remove(world.own(*jobs.VERSIONS["Job"]), submitter)
    job.pop("_head", None)
    for name in _RESET:
        job["status"].pop(name, None)


def _submit(world: World, of_clusters: Kind, job: Object, cluster: Object) -> None:
    """Run the job's entrypoint by a job of Kubernetes, and end with that."""
    kind = world.own(*jobs.VERSIONS["Job"])
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    status = job["status"]
    submitter = world.get(kind, namespace, name)
    if submitter is None:
        programs.begin_on_ray(world, job, cluster)
        entrypoint = str(job["spec"].get("entrypoint", ""))
        template = copy.deepcopy(job["spec"].get("submitterPodTemplate") or {})
        spec = template.setdefault("spec", {})
        spec.setdefault("restartPolicy", "Never")
        container = (spec.get("containers") or [{}])[0]
        command = {"name": programs.RAY_SUBMITTER, "command": ["/bin/bash", "-c", entrypoint]}
        spec["containers"] = [{**container, **command}]
        metadata = {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [objects.owner(job)],
        }
        thing = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
        limit = (job["spec"].get("submitterConfig") or {}).get("backoffLimit", 2)
        world.put(kind, {**thing, "spec": {"backoffLimit": limit, "template": template}})
    status |= {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
    if submitter is None:
        return
    done = objects.holds(submitter, "Complete")
    failed = (submitter.get("status") or {}).get("failed")
    head = next((it for it in pods.of(world, cluster) if jobs.is_head(it)), None)
    if head is None or job.get("_head") not in {None, head["metadata"]["uid"]}:
        # What submitted the job hears no more of it, and Ray knows nothing of it any more.
        _fail(world, of_clusters, job, cluster, "SubmissionFailed", _LOST)
    elif failed or (done and programs.fails_on_ray(job)):
        # The operator asks Ray, and waits for no other try of the submitter.
        status["jobStatus"] = "FAILED"
        message = _FAILED.format(code=_ended(world, head) or 1)
        _fail(world, of_clusters, job, cluster, "AppFailed", message)
    elif done:
        _ended(world, head)
        status |= {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
        status |= {"message": "Job finished successfully.", "succeeded": 1}
        _end(world, of_clusters, job, cluster)
    else:
        _run(world, job, submitter, head)


def _run(world: World, job: Object, submitter: Object, head: Object) -> None:
    """Let the head begin a known program once it is submitted; the submitter ends as it does."""
    kind = world.own("v1", "pods")
    running = [it for it in pods.of(world, submitter) if it["status"]["phase"] == "Running"]
    if not running or "_head" in job:
        return
    done = pod_jobs.begin_on_ray(world, head, str(job["spec"].get("entrypoint", "")))
    if done is not None:
        job["_head"] = head["metadata"]["uid"]
        (pod,) = running
        pod["_ends"], pod["_code"] = world.request.after(done.seconds), int(done.code != 0)
        world.wake(pod["_ends"])
        world.put(kind, pod)
        world.put(kind, head)


def _ended(world: World, head: Object) -> int:
    """Keep what the program on a head has said, and how it ended; its exit code."""
    kind, code = world.own("v1", "pods"), pod_jobs.end(world, head)
    if kind is not None:
        world.put(kind, head)
    return code


def _digest(world: World, job: Object) -> str:
    """Each attempt has a cluster of its own."""
    text = f"{job['metadata']['uid']} {world.version()}"
    return hashlib.sha256(text.encode()).hexdigest()[:5]
