"""The jobs that Test runs: submit one, wait for its nodes, read what it found, and delete it.

The bandwidth test measures NCCL. The test through Ray is a RayJob that takes each GPU of its nodes
at once and lets it work: Ray finds GPUs by another way than a pod does, so its head, its workers
and what the operator makes of them all have to be well. Bandwidth is not measured again there: NCCL
is the same in all pods (`fabric_pods`), and Ray's images have no test of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.documents.checks import RayCheck
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.google import refusals
from provision.kinds.gke.kubernetes import all_gather, fabric_pods, jobs, reasons, status
from provision.kinds.gke.kubernetes.kueue import NAMESPACE
from provision.kinds.gke.kubernetes.objects import Object, field, holds
from provision.time.deadline import Deadline, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provision.documents.gke_status import Workload
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.status import Status
    from provision.time.stages import Progress

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a job."""
_CLEANING: Final = 120.0  # seconds of cloud time
_CLEANING_POLL: Final = 2.0
_NO_SCALE_UP: Final = "FailedScaleUp"
"""The reason of the autoscaler's event for a pod that got no node."""
_LATER: Final = "run Test again later, or raise CAPACITY_TIMEOUT"
_MOST_RETRIES: Final = 3
"""Requests that fail before the test gives up: a job waits on, but here somebody looks on."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One job of Test's."""

    cluster: Cluster
    wanted: Object  # the job, with the name that every such job has: there is one at a time
    words: str  # what it is called, such as "the bandwidth test"
    # its pods, and all else that has to be gone before the next one begins
    pods: Callable[[], list[Object]]
    has_started: Callable[[], bool]  # whether its pods have nodes, and run

    @contextlib.contextmanager
    def there(self, progress: Progress) -> Iterator[None]:
        """Have the job in the cluster for as long as a block lasts."""
        self._clean(progress)
        try:
            deadline = progress.deadline(_CLEANING, _CLEANING_POLL)
            deadline.retry(lambda: self.cluster.apply(self.wanted), f"submit {self.words}")
            yield
        finally:
            self._clean(progress)

    def await_nodes(self, asked: str, timeout: float, progress: Progress) -> float:
        """Wait until the job runs; returns the seconds of cloud time that it took."""
        with progress.stage(StageName.TEST_NODES, OnInterrupt.ENDS_TEST) as stage:
            deadline = stage.deadline(timeout, _POLL)
            while not deadline.retry(self.has_started, f"look at {self.words}"):
                queue = deadline.retry(lambda: status.read(self.cluster), "look at the queue")
                work = next(iter(self._workloads(queue)), None)
                if work and (work.state == "given up" or work.retries >= _MOST_RETRIES):
                    raise self._refused(work)
                # One that the queue has let in may still wait for nodes.
                waits = work if work and work.state not in {"starting", "running"} else None
                state = waits.state if waits else "no nodes yet"
                why = waits.message if waits else deadline.retry(self._warning, "look at it")
                stage.news("; ".join(filter(None, [f"{asked}: {state}", refusals.in_short(why)])))
                if deadline.is_over:
                    advice = self._advice() or reasons.advice("", why)
                    raise StillWaiting(
                        f"No nodes came for {self.words} in time: {state}",
                        why=why,
                        fix="\n".join(filter(None, [advice, _LATER])),
                        setting="CAPACITY_TIMEOUT",
                    )
                deadline.pause()
            waited = deadline.passed
            stage.counts(asked)
        return waited

    def await_end(self, has_ended: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait for the end of the job; whether it came in time."""
        while not deadline.retry(has_ended, f"look at {self.words}"):
            if deadline.is_over:
                return False
            deadline.pause()
        return True

    def _clean(self, progress: Progress) -> None:
        """Delete the job, and wait until what it has made is gone too."""
        job = self.wanted

        def left() -> list[Object]:
            self.cluster.delete(job["apiVersion"], job["kind"], job["metadata"]["name"], NAMESPACE)
            return self.pods()

        with progress.stage(StageName.TEST_CLEANING) as stage:
            deadline = stage.deadline(_CLEANING, _CLEANING_POLL)
            while found := deadline.retry(left, f"delete {self.words}"):
                if deadline.is_over:
                    return
                stage.counts(f"{len(found)} pods of a test are being deleted")
                deadline.pause()

    def _workloads(self, found: Status) -> list[Workload]:
        title = f"{self.wanted['kind']} {self.wanted['metadata']['name']}"
        return [work for work in found.workloads if work.name == title]

    def _advice(self) -> str:
        """What Status advises about the job's request for nodes; "" for nothing."""
        try:
            found = status.read(self.cluster)
        except (ClusterError, TransientError):
            return ""
        name = self.wanted["metadata"]["name"]
        advice = [work.advice for work in self._workloads(found)]
        advice += [request.advice for request in found.requests if name in request.name]
        return next(filter(None, advice), "")

    def _refused(self, work: Workload) -> CapacityError:
        """The error if Kueue makes no more attempts; the job is deleted, so it is not told to."""
        advice = [line for line in work.advice.splitlines() if line != status.GIVEN_UP]
        return CapacityError(
            f"No nodes came for {self.words}",
            code=refusals.code_in(work.message, Code.CAPACITY_REFUSED),
            why=work.message,
            fix="\n".join(advice),
        )

    def _warning(self) -> str:
        """The autoscaler's last message about pods that got no node; "" if there is none."""
        own = {pod["metadata"]["uid"] for pod in self.pods()}
        said = [
            event
            for event in self.cluster.all("v1", "Event", NAMESPACE)
            if event.get("reason") == _NO_SCALE_UP and event["involvedObject"].get("uid") in own
        ]
        said.sort(key=lambda event: str(event.get("lastTimestamp") or ""))
        return str(said[-1]["message"]) if said else ""


def _named(job: Object, name: str) -> Object:
    """A job by the name that every such job has."""
    metadata = {**job["metadata"], "name": name}
    del metadata["generateName"]
    return {**job, "metadata": metadata}


def _phase(pod: Object) -> str | None:
    return (pod.get("status") or {}).get("phase")


# ------------------------------------------------------------------------------ bandwidth

BANDWIDTH: Final = "aiinfra-bandwidth-test"
_BANDWIDTH_PODS: Final = f"{fabric_pods.SET_LABEL}={BANDWIDTH}"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A bandwidth test that has run, by the numbers of its pods."""

    nodes: tuple[str, ...]  # the node of each pod
    logs: tuple[str, ...]  # what each pod has written; "" for one that has not started
    waited: float  # seconds of cloud time until there were nodes


def bandwidth(  # noqa: PLR0913 - what a test is about
    cluster: Cluster,
    facts: ClusterFacts,
    pool: GpuPool,
    nodes: int,
    *,
    timeout: float,
    progress: Progress,
) -> Ran:
    """Run the bandwidth test on nodes of a pool; the error of a late one has the end of its log."""
    first = f"{_BANDWIDTH_PODS},{fabric_pods.RANK_LABEL}=0"
    ours = Trial(
        cluster=cluster,
        wanted=facts.mirrored(_named(all_gather.job_set(facts, pool, nodes), BANDWIDTH)),
        words="the bandwidth test",
        pods=lambda: cluster.all("v1", "Pod", NAMESPACE, _BANDWIDTH_PODS),
        has_started=lambda: (
            not {"Running", "Succeeded", "Failed"}.isdisjoint(
                map(_phase, cluster.all("v1", "Pod", NAMESPACE, first))
            )
        ),
    )

    def has_ended() -> bool:
        found = cluster.find(fabric_pods.JOB_SET_API, "JobSet", BANDWIDTH, NAMESPACE) or {}
        return holds(found, "Completed") or holds(found, "Failed")

    asked = f"{nodes} nodes of {pool.name}" if nodes > 1 else f"a node of {pool.name}"
    with ours.there(progress):
        waited = ours.await_nodes(asked, timeout, progress)
        with progress.stage(StageName.TEST, OnInterrupt.ENDS_TEST) as stage:
            stage.news(f"The bandwidth test is running on {asked}")
            deadline = stage.deadline(all_gather.SECONDS, _POLL)
            ended = ours.await_end(has_ended, deadline)
            names, logs = deadline.retry(lambda: _logs(ours), "read the logs of the bandwidth test")
            if not ended:
                raise ClusterError(
                    "The bandwidth test did not finish in time",
                    code=Code.NOT_IN_TIME,
                    why="\n".join("".join(logs[:1]).splitlines()[-20:]),
                    fix="run Test again; if it hangs again, check the logs of the NCCL installers",
                )
    return Ran(nodes=names, logs=logs, waited=waited)


def _logs(ours: Trial) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The node and the log of each pod, in the order of their numbers."""
    numbered: dict[int, Object] = {}
    for pod in ours.pods():
        numbered[int((pod["metadata"].get("labels") or {}).get(fabric_pods.RANK_LABEL, "0"))] = pod
    pods = [numbered[number] for number in sorted(numbered)]
    nodes = (str(pod["spec"].get("nodeName") or pod["metadata"]["name"]) for pod in pods)
    logs = (
        ""
        if _phase(pod) == "Pending"
        else ours.cluster.log(NAMESPACE, pod["metadata"]["name"], all_gather.CONTAINER)
        for pod in pods
    )
    return tuple(nodes), tuple(logs)


# ------------------------------------------------------------------------------ Ray

RAY: Final = "aiinfra-ray-test"
RAY_SECONDS: Final = 900
"""The longest that Ray may take once it has its nodes."""

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


def ray_job(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The RayJob of the test through Ray."""
    bare = dataclasses.replace(facts, buckets=(), shares=())  # nothing to wait for or to break
    program = _PROGRAM.replace("@gpus@", str(nodes * pool.gpus))
    made = _named(jobs.ray_job(bare, pool, nodes, program), RAY)
    (workers,) = made["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (worker,) = workers["template"]["spec"]["containers"]
    worker["env"] = [*worker.get("env", []), field("NODE_NAME", "spec.nodeName")]
    return facts.mirrored(made)


def ray(  # noqa: PLR0913 - what a test is about
    cluster: Cluster,
    facts: ClusterFacts,
    pool: GpuPool,
    nodes: int,
    *,
    timeout: float,
    progress: Progress,
) -> tuple[RayCheck, float]:
    """Run the test through Ray; what became of it, and after how many seconds it had nodes."""

    def look() -> Mapping[str, Any]:
        found = cluster.find(jobs.RAY_API, "RayJob", RAY, NAMESPACE) or {}
        return found.get("status") or {}

    def is_unfit() -> bool:
        return look().get("jobDeploymentStatus") in _UNFIT

    ours = Trial(
        cluster=cluster,
        wanted=ray_job(facts, pool, nodes),
        words="the test through Ray",
        pods=lambda: _ray_made(cluster),
        has_started=lambda: bool(look().get("jobStatus")) or is_unfit(),
    )
    asked = f"Ray on {nodes} nodes of {pool.name}" if nodes > 1 else f"Ray on a node of {pool.name}"
    with ours.there(progress):
        waited = ours.await_nodes(asked, timeout, progress)
        with progress.stage(StageName.TEST, OnInterrupt.ENDS_TEST) as stage:
            stage.news("Ray lets each GPU work")
            deadline = stage.deadline(RAY_SECONDS, _POLL)
            ours.await_end(lambda: look().get("jobStatus") in _ENDS or is_unfit(), deadline)
            ended = look()
            log = deadline.retry(lambda: _ray_log(cluster), "read what Ray has found")
    return judge_ray(ended, log, nodes * pool.gpus), waited


def judge_ray(status: Mapping[str, Any], log: str, wanted: int) -> RayCheck:
    """What became of a RayJob that was to use so many GPUs."""
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


def _ray_made(cluster: Cluster) -> list[Object]:
    """The Ray clusters of the test, with their pods."""
    mine = f"ray.io/originated-from-cr-name={RAY}"
    found = cluster.all(jobs.RAY_API, "RayCluster", NAMESPACE, mine)
    for name in [it["metadata"]["name"] for it in found]:
        found += cluster.all("v1", "Pod", NAMESPACE, f"ray.io/cluster={name}")
    return found


def _ray_log(cluster: Cluster) -> str:
    pods = cluster.all("v1", "Pod", NAMESPACE, f"job-name={RAY}")
    ended = [pod for pod in pods if _phase(pod) != "Pending"]
    return "".join(cluster.log(NAMESPACE, it["metadata"]["name"], _SUBMITTER) for it in ended)
