"""A job of Run as a RayJob: the user's program on the head of a Ray cluster of its own.

Its pods are those of the one builder, as those of a JobSet. Each pod of Ray has the folder at one
path, where Ray looks for a program's modules; so it may be as large as a JobSet's (ADR 73).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import job_set, jobs
from provision.kinds.gke.kubernetes.job_set import CONTAINER, FOLDER, MOUNT, SHARED, End, Shape

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.job_set import Wanted
    from provision.kinds.gke.kubernetes.objects import Object

LABEL: Final = "app.kubernetes.io/instance"
"""The label with the job's name; KubeRay keeps it (1.6.2, common/pod.go, labelPod)."""
SCRIPT: Final = f"{SHARED}/run"
_VARIABLE: Final = "AIINFRA_PROGRAM"
_OVER: Final = frozenset({"Complete", "Failed", "ValidationFailed"})
_LATE: Final = "DeadlineExceeded"
# Which attempt it is, what keeps the log finds out.
_BEGIN: Final = f"""\
cd {SHARED}
echo $$ >shell
until [ -s attempt ]; do sleep 1; done
JOB_RESTART=$(($(cat attempt) - 1))
"""
# KubeRay deletes pods without a word to Ray, and Ray kills what it runs: the program has as long
# to save as a JobSet's.
_STOP: Final = f"""\
cd {SHARED} && [ ! -e code ] && pid=$(cat shell) && kill -TERM "${{pid}}" || exit 0
while kill -0 "${{pid}}" 2>/dev/null; do sleep 1; done
"""


def program(wanted: Wanted) -> str:
    """The script that Ray runs on the head."""
    return f"set -- {shlex.join(wanted.spec.command)}\n{_BEGIN}{job_set.PROGRAM}"


def build(facts: ClusterFacts, wanted: Wanted) -> Object:
    """The RayJob of a job."""
    spec = wanted.spec
    # Two shells and Ray, which joins words by rules of its own, read an entrypoint: so it is plain.
    made = jobs.ray_job(facts, wanted.pool, wanted.nodes, f"bash {SCRIPT}", spec.image)
    made["metadata"] = job_set.metadata(facts, wanted)
    body, cluster = made["spec"], made["spec"]["rayClusterSpec"]
    # Its time is Kueue's to end, restarts counted; KubeRay counts each attempt alone.
    del body["activeDeadlineSeconds"]
    if spec.seconds and not facts.has_queue:
        body["activeDeadlineSeconds"] = spec.seconds
    # Another submitter would run the program again on a head that has lost the first run.
    more = {"jobId": wanted.name, "backoffLimit": spec.restarts}
    body |= {**more, "submitterConfig": {"backoffLimit": 0}}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]
        is_head = group is groups[0]
        pod["metadata"]["labels"] = {LABEL: wanted.name}
        pod["spec"]["terminationGracePeriodSeconds"] = job_set.grace(wanted)
        rank = [{"name": "NODE_RANK", "value": "0"}] if is_head else None
        job_set.attend(facts, pod["spec"], wanted, rank)
        (container,) = pod["spec"]["containers"]
        container["env"] = job_set.variables(wanted, container.get("env", []))
        container["volumeMounts"] = [*container.get("volumeMounts", []), dict(MOUNT)]
        container["workingDir"] = FOLDER
        if is_head:
            text = job_set.as_it_is(program(wanted))
            container["env"].append({"name": _VARIABLE, "value": text})
            write = f'printf %s "${{{_VARIABLE}}}" >{SCRIPT}'
            container["command"] = [" && ".join([*container.get("command", []), write])]
            stop = {"exec": {"command": ["bash", "-c", _STOP, CONTAINER]}}
            container["lifecycle"] = {"preStop": stop}
    return made


def _end(thing: Object) -> End | None:
    status = thing.get("status") or {}
    if status.get("jobDeploymentStatus") not in _OVER:
        return None
    if status.get("jobStatus") == "SUCCEEDED":
        return End(succeeded=True, why="", ended=status.get("endTime"))
    told = str(status.get("message") or status.get("reason") or status.get("jobStatus") or "")
    why = "--time is over" if status.get("reason") == _LATE else told.partition("\n")[0]
    return End(succeeded=False, why=why, ended=status.get("endTime"))


def _selector(name: str, attempt: int | None) -> str:  # noqa: ARG001 - it has one cluster at a time
    return f"{LABEL}={name}"


SHAPE: Final = Shape(
    api="ray.io/v1",
    kind="RayJob",
    build=build,
    end=_end,
    restarts=lambda _: None,
    selector=_selector,
)
