"""What the programs in containers do, so far as the simulation knows them: how long, and its words.

Nothing is run. A program that is not known writes nothing and ends after a minute.

What a program of Ray says of the GPUs that it has used, so far as the simulation knows it.

Nothing is run. A program that asks nvidia-smi for errors of each GPU's memory hears of those that a
scenario has, writes what it found as JSON after a word of its own, and fails.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud.kubernetes import all_gather, fabric, nodes, pod_jobs, pods, pools, training
from rehearsal.cloud.kubernetes.objects import Object, World

_USUAL_SECONDS: Final = 60.0
_ALL_GATHER_SECONDS: Final = 240.0
_SLEEP: Final = re.compile(r"\s*(\d+)s?\s*")


def seconds(spec: Mapping[str, Any]) -> float:
    """How long the main container of a pod runs if it goes well, in cloud time."""
    container = fabric.main_container(spec)
    words = _words(container)
    if all_gather.PROGRAM in " ".join(words):
        return _ALL_GATHER_SECONDS
    arguments = container.get("args") or words[1:]
    asked = _SLEEP.fullmatch(arguments[-1]) if arguments else None
    return float(asked.group(1)) if asked else _USUAL_SECONDS


def begin(world: World, pod: Object, node: Object) -> None:
    """Let the containers of a pod find what is on their node once they start, and end soon."""
    verdict = fabric.judge(world, pod, node)
    pod["_nccl"] = dataclasses.asdict(verdict)
    if verdict.problem and pod["_seconds"] is not None:
        pod["_seconds"] = min(pod["_seconds"], _FAILURE_SECONDS)
    pod_jobs.begin(world, pod)


def exit_code(pod: Object) -> int:
    """With what the main container of a pod ends that has started."""
    failed = 1 if (pod.get("_nccl") or {}).get("problem") else 0
    return failed or int(pod.get("_code", 0))


def log(world: World, pod: Object, container: Mapping[str, Any]) -> str:
    """What a container that has started wrote so far."""
    text = " ".join(_words(container))
    if "_course" in pod:
        return pod_jobs.log(pod)
    if all_gather.PROGRAM in text:
        return all_gather.log(world, pod, text)
    if training.is_one(pod) and not exit_code(pod):
        said = fabric.words(pod) if fabric.uses_nccl(container) else ""
        return said + training.log(pod)
    if container["name"] == RAY_SUBMITTER:
        return _of_ray(world, pod, text)
    if fabric.uses_nccl(container):
        return fabric.words(pod)
    return f"{pod['_nccl']['problem']}\n" if exit_code(pod) else ""


def _of_ray(world: World, pod: Object, entrypoint: str) -> str:
    """What the submitter of a Ray job writes, with what NCCL said in the workers' processes."""
    name = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    if pod["status"]["phase"] != "Succeeded":
        return ""
    lines = [_RAY_LOG.format(name=name)]
    kind = world.own("v1", "pods")
    if "nccl" in entrypoint and kind is not None:
        for worker in world.each(kind, pod["metadata"]["namespace"]):
            labels = worker["metadata"]["labels"]
            own = labels.get("ray.io/cluster", "").startswith(f"{name}-")
            if own and labels.get("ray.io/node-type") == "worker" and "_nccl" in worker:
                said = fabric.words(worker, "INFO" if _ASKS in entrypoint else "")
                lines += [f"(worker) {it}\n" for it in said.splitlines()]
    of_jobs = world.kind("ray.io/v1", "rayjobs")
    job = world.get(of_jobs, pod["metadata"]["namespace"], name) if of_jobs else None
    end = "succeeded"
    if job is not None:
        lines.append(said_on_ray(job))
        end = "failed" if fails_on_ray(job) else end
    return "".join([*lines, f"SUCC cli.py: Job '{name}' {end}\n"])


RAY_SUBMITTER: Final = "ray-job-submitter"
_ASKS: Final = "NCCL_DEBUG"
"""In an entrypoint: its processes have NCCL log what it uses, whatever the worker's pod says."""
_FAILURE_SECONDS: Final = 5.0
_RAY_LOG: Final = """\
INFO cli.py: Job submission server address: http://{name}-head-svc.default.svc.cluster.local:8265
SUCC cli.py: Job '{name}' submitted successfully
"""


def _words(container: Mapping[str, Any]) -> list[str]:
    return [str(it) for it in [*(container.get("command") or []), *(container.get("args") or [])]]


_EXIT: Final = re.compile(r"(?:^|[;&\s])exit (\d+)\s*$")


def written_code(spec: Mapping[str, Any]) -> int:
    """The exit code of a pod's first container: that of a shell's last `exit N`, or 0."""
    container: Mapping[str, Any] = next(iter(spec.get("containers") or []), {})
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    found = _EXIT.search(str(words[-1])) if words else None
    return int(found.group(1)) if found else 0


_WORD: Final = re.compile(r'print\("(\S+) " \+ json\.dumps\(')
_ASKS_FOR_ERRORS: Final = "ecc.errors.uncorrected.volatile.total"
_ERRORS: Final = 17
_WORKERS: Final = "_workers"


def begin_on_ray(world: World, job: Object, cluster: Object) -> None:
    """Keep on which nodes a RayJob's workers are: its cluster is gone when its log is read."""
    job[_WORKERS] = [
        {
            "node": pod["spec"]["nodeName"],
            "gpus": pools.gpus_of(pod["spec"]),
            "bad": nodes.strikes(world, nodes.BAD_GPU, pod),
        }
        for pod in pods.of(world, cluster)
        if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
    ]


def fails_on_ray(job: Object) -> bool:
    """Whether a RayJob's program ends with an error."""
    asks = _ASKS_FOR_ERRORS in str(job["spec"].get("entrypoint", ""))
    return asks and any(it["bad"] for it in job.get(_WORKERS, ()))


def said_on_ray(job: Object) -> str:
    """What a RayJob's program has written at its end."""
    word = _WORD.search(str(job["spec"].get("entrypoint", "")))
    if word is None:
        return ""
    workers = job.get(_WORKERS, ())
    faults = [
        f"{it['node']}: GPU 0 has {_ERRORS} uncorrected memory (ECC) errors"
        for it in workers
        if it["bad"]
    ]
    gpus = {it["node"]: it["gpus"] for it in workers}
    return f"{word.group(1)} {json.dumps({'gpus': gpus, 'faults': faults})}\n"
