"""A job of Run as a JobSet: the user's program on all GPUs of some nodes, begun together.

Its pods are those of the one builder, with the folder, the log and the variables of a job added.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import limits
from provision.documents import json_object
from provision.kinds.gke.kubernetes import (
    fabric_pods,
    job_attendant,
    kueue,
    pod_secrets,
    run_ends,
    torchrun,
)
from provision.kinds.gke.kubernetes.objects import MANAGER, conditions, holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.spec.job import JobSpec

API: Final = "jobset.x-k8s.io/v1alpha2"
KIND: Final = "JobSet"
SET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
ATTEMPT_LABEL: Final = "jobset.sigs.k8s.io/restart-attempt"
RANK_LABEL: Final = "batch.kubernetes.io/job-completion-index"
OURS: Final = {"app.kubernetes.io/managed-by": MANAGER}
"""The label of what Run has made."""
CONTAINER: Final = "job"
FETCH: Final = "fetch-folder"
KEEP: Final = "keep-log"

_PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
GRACE: Final = 120  # seconds from SIGTERM to SIGKILL, as on VMs
_MARGIN: Final = 900
"""Seconds for which nodes are asked for beyond --time: their start, and the job's end."""
_JAX_PORT: Final = 29600
SHARED: Final = str(job_attendant.SHARED)
FOLDER: Final = f"{SHARED}/folder"
MOUNT: Final[Object] = {"name": "job", "mountPath": SHARED}
# The program is no child of a shell's job control, gets the pod's SIGTERM, and its exit code stays
# where the log is kept. What still writes when it has ended has ten seconds.
PROGRAM: Final = f"""\
cd {FOLDER}
JOB_ATTEMPT=$((JOB_RESTART + 1)) && export JOB_ATTEMPT
mkfifo {SHARED}/said
tee -a {SHARED}/log <{SHARED}/said &
tee=$!
told=
trap 'told=told again=yes; kill -TERM "${{child}}" 2>/dev/null' TERM
"$@" >{SHARED}/said 2>&1 </dev/null &
child=$!
[ -z "${{told}}" ] || kill -TERM "${{child}}"
# A signal ends a wait, not the program.
again=yes
while [ "${{again}}" = yes ]; do again=no; wait "${{child}}"; code=$?; done
(sleep 10; kill "${{tee}}") 2>/dev/null &
wait "${{tee}}"
echo "${{code}} ${{told}}" >{SHARED}/code.new && mv {SHARED}/code.new {SHARED}/code
exit "${{code}}"
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """A job, with all that was decided about it."""

    name: str
    spec: JobSpec
    pool: GpuPool  # where it runs
    nodes: int  # how many
    bucket: str
    folder: str  # the object with its folder, by its name in the bucket; "" for none
    told: str  # what the names of the objects that its pods write begin with


@dataclasses.dataclass(frozen=True, kw_only=True)
class End:
    """How a job has ended."""

    succeeded: bool  # whether well
    why: str  # what its object says of that; "" for nothing
    ended: str | None  # when, in RFC 3339 format; None if that is not known


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """What the object of a job looks like."""

    api: str
    kind: str
    build: Callable[[ClusterFacts, Wanted], Object]
    end: Callable[[Object], End | None]  # how it has ended; None as long as it has not
    # how often it was begun again; None where the object does not say
    restarts: Callable[[Object], int | None]
    # what its pods are found by; of one attempt alone if that is given, and they tell
    selector: Callable[[str, int | None], str]


def metadata(facts: ClusterFacts, wanted: Wanted) -> Object:
    """The metadata of a job: where it waits, and when Kueue ends it, before its nodes go."""
    spec, pool = wanted.spec, wanted.pool
    seconds = spec.seconds or limits.LONGEST_RUN
    most = min(seconds, _end_of_nodes(wanted).most) if pool.queued else spec.seconds
    made = kueue.job_metadata(facts, pool, "", seconds + _MARGIN)
    made["name"] = made.pop("generateName") + wanted.name
    made["labels"] = {**made.get("labels", {}), **OURS}
    if facts.has_queue:
        made["labels"][kueue.QUEUE_LABEL] = spec.queue or kueue.LOCAL_QUEUE
        if spec.priority:
            made["labels"][_PRIORITY_LABEL] = str(spec.priority)
        if most is not None:
            made["labels"][run_ends.LABEL] = str(most)
    return made


def grace(wanted: Wanted) -> int:
    """Seconds from SIGTERM to SIGKILL for its programs."""
    by_nodes = wanted.pool.queued and not wanted.spec.seconds
    return max(GRACE, _end_of_nodes(wanted).grace) if by_nodes else GRACE


def _end_of_nodes(wanted: Wanted) -> run_ends.OrderedEnd:
    asked = (wanted.spec.seconds or limits.LONGEST_RUN) + _MARGIN
    return run_ends.ordered(kueue.run_seconds(wanted.pool, asked))


def build(facts: ClusterFacts, wanted: Wanted) -> Object:
    """The JobSet of a job."""
    spec = wanted.spec
    pod = fabric_pods.template(facts, wanted.pool, _container(wanted), fabric_pods.Kind.WHOLE)
    place = [*_labelled("NODE_RANK", RANK_LABEL), *_labelled("JOB_RESTART", ATTEMPT_LABEL)]
    attend(facts, pod["spec"], wanted, place)
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace(wanted)}
    job: Object = {
        "parallelism": wanted.nodes,
        "completions": wanted.nodes,
        "completionMode": "Indexed",
        # If one node fails, the others wait for it, so all of the job ends.
        "backoffLimit": 0,
        # The Job then says which pod ended it, and how, when the pod is gone.
        "podFailurePolicy": {"rules": _failures()},
        "template": pod,
    }
    if spec.seconds and not facts.has_queue:
        job["activeDeadlineSeconds"] = spec.seconds
    too_late = {
        "name": "time",
        "action": "FailJobSet",
        "onJobFailureReasons": ["DeadlineExceeded"],
    }
    return {
        "apiVersion": API,
        "kind": KIND,
        "metadata": metadata(facts, wanted),
        "spec": {
            "failurePolicy": {
                "maxRestarts": spec.restarts,
                # The GPUs of a pod are free when it is gone, not when it is told to go.
                "restartStrategy": "BlockingRecreate",
                "rules": [too_late],
            },
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": torchrun.REPLICATED_JOB, "template": {"spec": job}}],
        },
    }


def _failures() -> list[Object]:
    lost = {"type": "DisruptionTarget", "status": "True"}
    codes = {"containerName": CONTAINER, "operator": "NotIn", "values": [0]}
    return [
        {"action": "FailJob", "onPodConditions": [lost]},
        {"action": "FailJob", "onExitCodes": codes},
    ]


def _container(wanted: Wanted) -> Object:
    spec = wanted.spec
    ours = [
        *torchrun.launch_variables(wanted.pool, wanted.nodes),
        *_labelled("JOB_RESTART", ATTEMPT_LABEL),
        {"name": "JAX_COORDINATOR_ADDRESS", "value": f"$(MASTER_ADDR):{_JAX_PORT}"},
        {"name": "JAX_NUM_PROCESSES", "value": "$(NNODES)"},
        {"name": "JAX_PROCESS_ID", "value": "$(NODE_RANK)"},
    ]
    # torchrun takes what it is not told from these.
    names = ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT")
    ours += [{"name": f"PET_{name}", "value": f"$({name})"} for name in names]
    return {
        "name": CONTAINER,
        "image": spec.image or torchrun.IMAGE,
        "command": [
            *("bash", "-c", PROGRAM, CONTAINER),
            *map(as_it_is, spec.command),
        ],
        "env": variables(wanted, ours),
        "volumeMounts": [dict(MOUNT)],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def variables(wanted: Wanted, ours: list[Object]) -> list[Object]:
    """The variables of a job's containers: ours, and those that somebody has set, which win."""
    spec, named = wanted.spec, {"name": "JOB_NAME", "value": wanted.name}
    given = [{"name": name, "value": as_it_is(value)} for name, value in spec.env.items()]
    return [*(it for it in (*ours, named) if it["name"] not in spec.env), *given]


def attend(
    facts: ClusterFacts, pod: dict[str, Any], wanted: Wanted, place: list[Object] | None
) -> None:
    """Add what fetches the folder, and what keeps the log until the program has ended.

    `place`: the variables by which a pod knows its rank and attempt; None to keep no log.
    """
    program = Path(job_attendant.__file__).read_text(encoding="utf-8")
    common: Object = {
        "image": pod_secrets.IMAGE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [dict(MOUNT)],
    }
    run = ["python3", "-c", program]
    fetch = {
        **common,
        "name": FETCH,
        "command": [*run, "fetch", wanted.bucket, wanted.folder]
        if wanted.folder
        else ["mkdir", "-p", "-m", "777", FOLDER],
    }
    pod["initContainers"] = [*pod.get("initContainers", ()), fetch]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": CONTAINER, "emptyDir": {}}]
    if place is None:
        return
    keep: Object = {
        **common,
        "name": KEEP,
        "restartPolicy": "Always",
        "command": [*run, "keep", wanted.bucket, wanted.told],
        "env": [
            *place,
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
    }
    if facts.secrets:  # which are masked in what is kept
        keep["volumeMounts"] = [*common["volumeMounts"], pod_secrets.mount()]
    pod["initContainers"].append(keep)


def as_it_is(text: str) -> str:
    """A text in which Kubernetes finds no references to variables, which are "$(NAME)"."""
    return text.replace("$", "$$")


def _labelled(name: str, label: str) -> list[Object]:
    """A variable with what a label of the pod says."""
    path = f"metadata.labels['{label}']"
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}]


def _end(thing: Object) -> End | None:
    said = conditions(thing)
    for name in ("Completed", "Failed"):
        if holds(thing, name):
            succeeded, told = name == "Completed", said[name]
            why = "" if succeeded else str(told.get("message", ""))
            moment = json_object.text(told.get("lastTransitionTime")) or None
            return End(succeeded=succeeded, why=why, ended=moment)
    return None


def _restarts(thing: Object) -> int:
    return json_object.whole((thing.get("status") or {}).get("restarts")) or 0


def _selector(name: str, attempt: int | None) -> str:
    only = "" if attempt is None else f",{ATTEMPT_LABEL}={attempt - 1}"
    return f"{SET_LABEL}={name}{only}"


SHAPE: Final = Shape(
    api=API, kind=KIND, build=build, end=_end, restarts=_restarts, selector=_selector
)
