"""The test through Ray: a RayJob that takes each GPU of its nodes at once and lets it work.

Ray finds GPUs by another way than a pod does: its head, its workers and what the operator makes of
them all have to be well. Bandwidth is not measured again: NCCL is the same in all pods
(`fabric_pods`), and Ray's images have no test of it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any, Final

from provision.documents.checks import RayCheck
from provision.documents.timeline import OnInterrupt, StageName
from provision.kinds.gke.kubernetes import jobs, trial
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.time.progress import Progress

NAME: Final = "aiinfra-ray-test"
SECONDS: Final = 900
"""The longest that Ray may take once it has its nodes."""

_API: Final = "ray.io/v1"
_OURS: Final = f"ray.io/originated-from-cr-name={NAME}"
_SUBMITTER: Final = "ray-job-submitter"
_ENDS: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
"""The states in which Ray has done with a job."""
_UNFIT: Final = frozenset({"Failed", "ValidationFailed"})
"""The states in which the operator has done with a job that Ray never ran."""
_FOUND: Final = re.compile(r"^.*?aiinfra-ray (\{.*\})\s*$", re.MULTILINE)

# Actors hold their GPUs, so all of them are at work at once and none is counted twice. The driver
# is called as a library: neither PyTorch nor CUDA's toolkit is needed (as in Test on VMs).
_PROGRAM: Final = """\
python -c '
import collections, ctypes, json, os, subprocess, sys, time
import ray
ray.init()
WANTED = @gpus@
until = time.monotonic() + 300
while ray.cluster_resources().get("GPU", 0) < WANTED and time.monotonic() < until:
    time.sleep(5)
@ray.remote(num_gpus=1)
class Gpu:
    def look(self):
        fault = ""
        query = "--query-gpu=ecc.errors.uncorrected.volatile.total"
        number = str(ray.get_gpu_ids()[0])
        told = subprocess.run(["nvidia-smi", "--id=" + number, query, "--format=csv,noheader"],
                              capture_output=True, text=True)
        errors = told.stdout.strip()
        if told.returncode:
            fault = "nvidia-smi failed: " + (told.stdout + told.stderr).strip()
        elif errors.isdigit() and int(errors):
            fault = "GPU " + number + " has " + errors + " uncorrected memory (ECC) errors"
        cuda = ctypes.CDLL("libcuda.so.1")
        context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(1 << 30)
        steps = (("cuInit", 0), ("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0),
                 ("cuCtxSetCurrent", context), ("cuMemAlloc_v2", ctypes.byref(memory), size),
                 ("cuMemsetD8_v2", memory, 1, size), ("cuCtxSynchronize",))
        for name, *values in steps:
            code = getattr(cuda, name)(*values)
            if code and not fault:
                fault = "GPU " + number + ": " + name + " failed with " + str(code)
        return os.environ["NODE_NAME"], fault
total = int(ray.cluster_resources().get("GPU", 0))
seen = ray.get([it.look.remote() for it in [Gpu.remote() for _ in range(total)]])
gpus = collections.Counter(node for node, _ in seen)
faults = [node + ": " + fault for node, fault in seen if fault]
print("aiinfra-ray " + json.dumps({"gpus": gpus, "faults": faults}))
sys.exit(0 if total == WANTED and not faults else 1)
'
"""


def job(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The RayJob of the test."""
    bare = dataclasses.replace(facts, buckets=(), shares=())  # nothing to wait for or to break
    made = jobs.ray_job(bare, pool, nodes, _PROGRAM.replace("@gpus@", str(nodes * pool.gpus)))
    made["metadata"] = {**made["metadata"], "name": NAME}
    del made["metadata"]["generateName"]
    (workers,) = made["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (worker,) = workers["template"]["spec"]["containers"]
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    worker["env"] = [*worker.get("env", []), node]
    return facts.mirrored(made)


def run(  # noqa: PLR0913 - what a test is about
    cluster: Cluster,
    facts: ClusterFacts,
    pool: GpuPool,
    nodes: int,
    *,
    timeout: float,
    progress: Progress,
) -> tuple[RayCheck, float]:
    """Run the test; the RayJob, its cluster and its pods are always deleted at the end.

    `timeout`: the longest wait for nodes, in seconds of cloud time. Returns what became of it, and
    the seconds of cloud time until it had its nodes.

    Raises:
        StillWaiting: No nodes came in time.
        CapacityError: The requests for nodes failed, one after the other.
    """
    ours = Trial(
        cluster=cluster,
        wanted=job(facts, pool, nodes),
        words="the test through Ray",
        pods=lambda: _made(cluster),
        has_started=lambda: bool(_status(cluster).get("jobStatus")) or _is_unfit(cluster),
    )
    asked = f"Ray on {nodes} nodes of {pool.name}" if nodes > 1 else f"Ray on a node of {pool.name}"
    with ours.there(progress):
        waited = ours.await_nodes(asked, timeout, progress)
        with progress.stage(StageName.TEST, OnInterrupt.ENDS_TEST) as stage:
            stage.news("Ray lets each GPU work")
            deadline = stage.deadline(SECONDS, trial.POLL)
            ours.await_end(lambda: _has_ended(cluster), deadline)
            status = _status(cluster)
            log = deadline.retry(lambda: _log(cluster), "read what Ray has found")
    return judge(status, log, nodes * pool.gpus), waited


def judge(status: Mapping[str, Any], log: str, wanted: int) -> RayCheck:
    """What became of a RayJob."""
    found = _FOUND.search(log)
    told: dict[str, Any] = json.loads(found.group(1)) if found else {}
    gpus: dict[str, int] = told.get("gpus", {})
    state = status.get("jobStatus") or status.get("jobDeploymentStatus")
    why = [str(it) for it in told.get("faults", [])]
    if found and sum(gpus.values()) != wanted:
        why.append(f"Ray found {sum(gpus.values())} of {wanted} GPUs")
    if not why and (state != "SUCCEEDED" or not found):
        ended = f"its job ended as {state}" if state in _ENDS | _UNFIT else "its job did not end"
        message = str(status.get("message") or status.get("reason") or "")
        why.append(": ".join(filter(None, [ended, message])))
    return RayCheck(passed=not why, gpus=gpus, why="; ".join(why))


def _status(cluster: Cluster) -> Mapping[str, Any]:
    found = cluster.find(_API, "RayJob", NAME, NAMESPACE) or {}
    status: Mapping[str, Any] = found.get("status") or {}
    return status


def _is_unfit(cluster: Cluster) -> bool:
    return _status(cluster).get("jobDeploymentStatus") in _UNFIT


def _has_ended(cluster: Cluster) -> bool:
    return _status(cluster).get("jobStatus") in _ENDS or _is_unfit(cluster)


def _made(cluster: Cluster) -> list[Object]:
    """The Ray clusters of the test, with their pods."""
    clusters = cluster.all(_API, "RayCluster", NAMESPACE, _OURS)
    names = [it["metadata"]["name"] for it in clusters]
    pods = [cluster.all("v1", "Pod", NAMESPACE, f"ray.io/cluster={name}") for name in names]
    return [*clusters, *(pod for those in pods for pod in those)]


def _log(cluster: Cluster) -> str:
    pods = cluster.all("v1", "Pod", NAMESPACE, f"job-name={NAME}")
    ended = [pod for pod in pods if (pod.get("status") or {}).get("phase") != "Pending"]
    return "".join(cluster.log(NAMESPACE, it["metadata"]["name"], _SUBMITTER) for it in ended)
