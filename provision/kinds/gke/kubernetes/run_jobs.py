"""The jobs of Run: a JobSet or a RayJob with the user's program, begun together on all its nodes.

Their pods are those of the one builder, with the folder, the log and the variables of a job added.
A JobSet runs the program on each node; a RayJob runs it on the head of a Ray cluster of its own.
A job of tasks is an indexed Job, whose pods come and go one by one (ADR 109).
Each pod of Ray has the folder at one path, where Ray looks for a program's modules; so it may be as
large as a JobSet's (ADR 73).
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import limits
from provision.documents import json_object
from provision.kinds.gke.kubernetes import (
    fabric_pods,
    job_attendant,
    jobs,
    kueue,
    nccl,
    pods,
)
from provision.kinds.gke.kubernetes.fabric_pods import RANK_LABEL, SET_LABEL
from provision.kinds.gke.kubernetes.objects import (
    OURS,
    conditions,
    field,
    holds,
    labelled,
    mount,
    variables,
)
from provision.settings.choices import RestartOn

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.spec.job import JobSpec

ATTEMPT_LABEL: Final = "jobset.sigs.k8s.io/restart-attempt"
CONTAINER: Final = "job"
KEEPER: Final = "keep-log"
SHARED: Final = str(job_attendant.SHARED)

_PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
_GRACE: Final = 120  # seconds from SIGTERM to SIGKILL, as on VMs
_MARGIN: Final = 900
"""Seconds for which nodes are asked for beyond --time: their start, and the job's end."""
_JAX_PORT: Final = 29600
FOLDER: Final = f"{SHARED}/folder"
_MOUNT: Final = mount(CONTAINER, SHARED)
HOPELESS: Final = 121
"""With what the shell of a program ends that would fail again: its set then fails as well."""
_AGAIN: Final = "AIINFRA_AGAIN"
"""The restarts of a job, the seconds before which a failure ends it, and the pause before that."""
_LONG: Final = 600
_NEWS: Final = 30
"""Seconds within which Kubernetes hears that a node goes whose end makes other pods fail.

A pod has 15 of them from the notice on, and a Spot VM 30 (GKE, "Spot VMs", read 2026-11-29).
"""
# The program is no child of a shell's job control, gets the pod's SIGTERM, and its exit code stays
# where the log is kept. What still writes when it has ended has ten seconds.
_EXIT: Final = 'exit "${code}"\n'
_RUN: Final = f"""\
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
"""
# JobSet has neither an end for what fails at once nor a pause before a restart: this has both.
PROGRAM: Final = f"""\
{_RUN}read -r most least pause <<<"${{{_AGAIN}:-0 0 0}}"
if [ "${{code}}" != 0 ] && [ -z "${{told}}" ] && [ "${{JOB_RESTART}}" -lt "${{most}}" ]; then
  trap 'exit "${{code}}"' TERM
  [ "${{code}}" -lt 126 ] || [ "${{code}}" -gt 127 ] || [ "${{least}}" = 0 ] || SECONDS=0
  [ "${{code}}" != {HOPELESS} ] || code=1
  if [ "${{SECONDS}}" -lt "${{least}}" ]; then
    code={HOPELESS}
  else
    pause=$((10 << (JOB_RESTART < 5 ? JOB_RESTART : 5)))
    pause=$((pause < 300 ? pause : 300))
  fi
  sleep "${{pause}}" &
  wait "$!"
fi
{_EXIT}"""

_ARRAY: Final = "AIINFRA_ARRAY"
"""The number of a job's first task, and how many pods come before it that only end."""
TASK: Final = f"""\
read -r first before <<<"${{{_ARRAY}}}"
[ "${{JOB_COMPLETION_INDEX}}" -ge "${{before}}" ] || exit 0
JOB_INDEX=$((JOB_COMPLETION_INDEX - before + first)) && export JOB_INDEX
{PROGRAM}"""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A job, with all that was decided about it."""

    name: str
    spec: JobSpec
    pool: GpuPool  # where it runs
    nodes: int
    slots: int = 1  # how many of its tasks run at a time
    bucket: str
    folder: str  # the object with its folder, by its name in the bucket; "" for none
    told: str  # what the names of the objects that its pods write begin with


@dataclass(frozen=True, kw_only=True)
class End:
    """How a job has ended."""

    succeeded: bool
    why: str  # what its object says of that; "" for nothing
    ended: str | None  # when, in RFC 3339 format; None if that is not known


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the object of a job looks like."""

    api: str
    kind: str
    build: Callable[[ClusterFacts, Wanted], Object]
    end: Callable[[Object], End | None]  # how it has ended; None as long as it has not
    # what its pods are found by; of one attempt alone if that is given, and they tell
    selector: Callable[[str, int | None], str]
    # how often it was begun again; None where the object does not say
    restarts: Callable[[Object], int | None] = lambda _: None


# ------------------------------------------------------------------------------ what both have


def _metadata(facts: ClusterFacts, wanted: Wanted) -> Object:
    """The metadata of a job: where it waits, and when Kueue ends it, before its nodes go."""
    spec, pool = wanted.spec, wanted.pool
    asked = _asked(spec)
    seconds = asked or limits.LONGEST_RUN
    most = min(seconds, _end_of_nodes(wanted).most) if pool.queued else asked
    if spec.array and not pool.queued:
        most = None  # its pods have an end of their own
    made = kueue.job_metadata(facts, pool, "", _of_nodes(spec))
    made["name"] = made.pop("generateName") + wanted.name
    made["labels"] = {**made.get("labels", {}), **OURS}
    if facts.has_queue:
        made["labels"][kueue.QUEUE_LABEL] = spec.queue or kueue.LOCAL_QUEUE
        if spec.priority:
            made["labels"][_PRIORITY_LABEL] = str(spec.priority)
        if most is not None:
            made["labels"][kueue.MOST_SECONDS] = str(most)
    return made


def _grace(wanted: Wanted) -> int:
    """Seconds from SIGTERM to SIGKILL for its programs."""
    by_nodes = wanted.pool.queued and not wanted.spec.seconds
    return max(_GRACE, _end_of_nodes(wanted).grace) if by_nodes else _GRACE


def _asked(spec: JobSpec) -> int | None:
    """For how long a job may run: with tasks, for as long as they take one after the other."""
    turns = spec.array.tasks * (1 + spec.restarts) if spec.array else 1
    return spec.seconds and min(spec.seconds * turns, limits.LONGEST_RUN)


def _of_nodes(spec: JobSpec) -> int:
    """For how many seconds nodes of a queued pool are asked for."""
    return (_asked(spec) or limits.LONGEST_RUN) + _MARGIN


def _end_of_nodes(wanted: Wanted) -> jobs.OrderedEnd:
    return jobs.ordered(kueue.run_seconds(wanted.pool, _of_nodes(wanted.spec)))


def _variables(wanted: Wanted, ours: list[Object]) -> list[Object]:
    """The variables of a job's containers: ours, and those that somebody has set, which win."""
    env = wanted.spec.env
    known = [*ours, *variables({"JOB_NAME": wanted.name})]
    given = variables({name: _as_it_is(value) for name, value in env.items()})
    return [*(it for it in known if it["name"] not in env), *given]


def _attend(
    facts: ClusterFacts, pod: dict[str, Any], wanted: Wanted, place: list[Object] | None
) -> None:
    """Add what fetches the folder, and what keeps the log until the program has ended.

    `place`: the variables by which a pod knows its rank and attempt; None to keep no log.
    """
    run = ["python3", "-c", Path(job_attendant.__file__).read_text(encoding="utf-8")]
    common: Object = {
        "image": fabric_pods.GCLOUD,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [dict(_MOUNT)],
    }
    fetch = {
        **common,
        "name": "fetch-folder",
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
        "name": KEEPER,
        "restartPolicy": "Always",
        "command": [*run, "keep", wanted.bucket, wanted.told],
        "env": [*place, field("NODE_NAME", "spec.nodeName")],
    }
    # Nodes without one have nothing but sockets, and a node alone needs none.
    if wanted.pool.gpu_network and wanted.nodes > 1 and wanted.spec.is_guarded:
        keep["env"] += variables({"AIINFRA_FABRIC": "yes"})
    if facts.secrets:  # which are masked in what is kept
        keep["volumeMounts"] = [*common["volumeMounts"], dict(fabric_pods.SECRETS_MOUNT)]
    pod["initContainers"].append(keep)


def _as_it_is(text: str) -> str:
    """A text in which Kubernetes finds no references to variables, which are "$(NAME)"."""
    return text.replace("$", "$$")


def numbers(template: Object) -> tuple[int, int]:
    """The number of the first task of pods, and how many pods come before it; 0 and 0 for none."""
    containers = (template.get("spec") or {}).get("containers") or ()
    given = (it for one in containers for it in one.get("env") or () if it["name"] == _ARRAY)
    text = next((str(it.get("value")) for it in given), "")
    found = [int(it) for it in text.split() if it.isdecimal()]
    return (found[0], found[1]) if len(found) > 1 else (0, 0)


def ended(thing: Object) -> tuple[list[int], list[int]]:
    """The numbers of the tasks of a Job that have succeeded, and of those that have failed."""
    first, before = numbers((thing.get("spec") or {}).get("template") or {})
    status = thing.get("status") or {}
    most = json_object.whole((thing.get("spec") or {}).get("completions")) or 0
    done, failed = (
        [it - before + first for it in _indexes(status.get(name), most) if it >= before]
        for name in ("completedIndexes", "failedIndexes")
    )
    return done, failed


def _indexes(text: object, most: int) -> list[int]:
    """What Kubernetes means by "0-3,7", below a number."""
    found = (re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", it) for it in str(text or "").split(","))
    spans = ((int(it[1]), int(it[2] or it[1])) for it in found if it)
    return sorted({it for low, high in spans for it in range(low, min(high + 1, most))})


# ------------------------------------------------------------------------------ JobSet


def _pod(facts: ClusterFacts, wanted: Wanted, attempt: Object, *more: Object) -> Object:
    """The template of the pods that run the program; `attempt`, `more`: variables of each."""
    whole, gpus = fabric_pods.Kind.WHOLE, wanted.spec.gpus
    container = _container(wanted, attempt, *more)
    pod = fabric_pods.template(facts, wanted.pool, container, whole, gpus)
    _attend(facts, pod["spec"], wanted, [labelled("NODE_RANK", RANK_LABEL), attempt, *more])
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": _grace(wanted)}
    return pod


def _job_set(facts: ClusterFacts, wanted: Wanted) -> Object:
    spec = wanted.spec
    pod = _pod(facts, wanted, labelled("JOB_RESTART", ATTEMPT_LABEL))
    # The Job then says which pod ended it, and how, when the pod is gone.
    codes = {"containerName": CONTAINER, "operator": "NotIn", "values": [0]}
    job = fabric_pods.failed_by(codes)
    if spec.seconds and not facts.has_queue:
        job["activeDeadlineSeconds"] = spec.seconds
    too_late = {
        "name": "time",
        "action": "FailJobSet",
        "onJobFailureReasons": ["DeadlineExceeded"],
    }
    # By its words: the reason is the same for a lost node (JobSet 0.10, KEP-262).
    hopeless = {
        "name": "hopeless",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [f"exit code {HOPELESS} matching"],
    }
    again = fabric_pods.restarted(spec.restarts, too_late, hopeless)
    return fabric_pods.job_set(_metadata(facts, wanted), pod, wanted.nodes, again, job)


def _container(wanted: Wanted, *more: Object) -> Object:
    spec = wanted.spec
    is_task = spec.array is not None
    # torchrun takes what it is not told from those of PET.
    names = ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT")
    others = {
        "JAX_COORDINATOR_ADDRESS": f"$(MASTER_ADDR):{_JAX_PORT}",
        # MaxText reads these two, and trains on each node alone where they are missing.
        "JAX_COORDINATOR_IP": "$(MASTER_ADDR)",
        "JAX_COORDINATOR_PORT": _JAX_PORT,
        "JAX_NUM_PROCESSES": "$(NNODES)",
        "JAX_PROCESS_ID": "$(NODE_RANK)",
        # The launchers of Google's GPU recipes take these; LD_LIBRARY_PATH is what the last one is.
        "GPUS_PER_NODE": "$(NPROC_PER_NODE)",
        "JOB_IDENTIFIER": wanted.name,
        "NCCL_PLUGIN_PATH": nccl.LIBRARIES,
        **{f"PET_{name}": f"$({name})" for name in names},
    }
    least = {None: _LONG, RestartOn.LOST: limits.LONGEST_RUN, RestartOn.ANY: 0}[spec.restart_on]
    # A single pod has no other that may be lost.
    again = f"{spec.restarts} {least} {_NEWS if wanted.nodes > 1 else 0}"
    ours = [
        *jobs.launch_variables(
            wanted.pool, wanted.nodes, spec.gpus, seconds=_of_nodes(spec), alone=is_task
        ),
        *more,
        *variables(others | ({_AGAIN: again} if spec.restarts else {})),
    ]
    return {
        "name": CONTAINER,
        "image": spec.image or jobs.IMAGE,
        "command": [
            *("bash", "-c", TASK if is_task else PROGRAM, CONTAINER),
            *map(_as_it_is, spec.command),
        ],
        "env": _variables(wanted, ours),
        "volumeMounts": [dict(_MOUNT)],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _end_of_set(thing: Object) -> End | None:
    said = conditions(thing)
    for name in ("Completed", "Failed"):
        if holds(thing, name):
            succeeded, told = name == "Completed", said[name]
            why = "" if succeeded else str(told.get("message", ""))
            moment = json_object.text(told.get("lastTransitionTime")) or None
            return End(succeeded=succeeded, why=why, ended=moment)
    return None


JOB_SET: Final = Shape(
    api=fabric_pods.JOB_SET_API,
    kind="JobSet",
    build=_job_set,
    end=_end_of_set,
    restarts=lambda it: json_object.whole((it.get("status") or {}).get("restarts")) or 0,
    selector=lambda name, attempt: (
        f"{SET_LABEL}={name}" + (f",{ATTEMPT_LABEL}={attempt - 1}" if attempt else "")
    ),
)

# ------------------------------------------------------------------------------ Job

JOB_LABEL: Final = "batch.kubernetes.io/job-name"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
"""The annotation of a pod with how often its index has failed before."""
_LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_PART: Final = 4
"""The share of the tasks at a time, as 1 of so many, with which the queue may begin a job."""


def _job(facts: ClusterFacts, wanted: Wanted) -> Object:
    """A job of tasks.

    Kueue takes back what a job has of whose pods not so many have succeeded or are ready as run at
    a time, and a task that has failed is neither: the others would be stopped. So pods that only
    end come first, as many as can ever be missing.
    """
    spec, before = wanted.spec, wanted.slots - 1
    assert spec.array is not None  # noqa: S101 - what makes it this shape
    attempt = field("JOB_RESTART", f"metadata.annotations['{FAILURES}']")
    own = variables({_ARRAY: f"{spec.array.first} {before}"})
    pod = _pod(facts, wanted, attempt, *own)
    if spec.seconds:
        pod["spec"]["activeDeadlineSeconds"] = spec.seconds
    made = _metadata(facts, wanted)
    if facts.has_queue and before:
        least = {_LEAST: str(math.ceil(wanted.slots / _PART))}
        made["annotations"] = {**made.get("annotations", {}), **least}
    codes = {"containerName": CONTAINER, "operator": "In", "values": [HOPELESS]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": made,
        "spec": {
            "parallelism": wanted.slots,
            "completions": before + spec.array.tasks,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": spec.restarts,
            "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": codes}]},
            "template": pod,
        },
    }


def _end_of_job(thing: Object) -> End | None:
    said = conditions(thing)
    told = next((said[it] for it in ("Complete", "Failed") if holds(thing, it)), None)
    if told is None:
        return None
    done, failed = ended(thing)
    _, before = numbers(thing["spec"].get("template") or {})
    # One that came before may have failed, with its node.
    succeeded = not failed and len(done) + before == thing["spec"].get("completions")
    why = "" if succeeded else str(told.get("message", ""))
    return End(succeeded=succeeded, why=why, ended=told.get("lastTransitionTime"))


JOB: Final = Shape(
    api="batch/v1",
    kind="Job",
    build=_job,
    end=_end_of_job,
    selector=lambda name, _: f"{JOB_LABEL}={name}",
)

# ------------------------------------------------------------------------------ RayJob

RAY_LABEL: Final = "app.kubernetes.io/instance"
"""The label with the job's name; KubeRay keeps it (1.6.2, common/pod.go, labelPod)."""
_SCRIPT: Final = f"{SHARED}/run"
_VARIABLE: Final = "AIINFRA_PROGRAM"
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


def _ray_job(facts: ClusterFacts, wanted: Wanted) -> Object:
    spec = wanted.spec
    # Two shells and Ray, which joins words by rules of its own, read an entrypoint: so it is plain.
    made = jobs.ray_job(facts, wanted.pool, wanted.nodes, f"bash {_SCRIPT}", spec.image)
    made["metadata"] = _metadata(facts, wanted)
    body, cluster = made["spec"], made["spec"]["rayClusterSpec"]
    # Its time is Kueue's to end, restarts counted; KubeRay counts each attempt alone.
    del body["activeDeadlineSeconds"]
    if spec.seconds and not facts.has_queue:
        body["activeDeadlineSeconds"] = spec.seconds
    # Another submitter would run the program again on a head that has lost the first run.
    more = {"jobId": wanted.name, "backoffLimit": spec.restarts}
    body |= {**more, "submitterConfig": {"backoffLimit": 0}}
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]
        is_head = group is cluster["headGroupSpec"]
        pod["metadata"]["labels"] = {RAY_LABEL: wanted.name}
        pod["spec"]["terminationGracePeriodSeconds"] = _grace(wanted)
        rank = variables({"NODE_RANK": 0}) if is_head else None
        _attend(facts, pod["spec"], wanted, rank)
        (container,) = pod["spec"]["containers"]
        container["env"] = _variables(wanted, container.get("env", []))
        container["volumeMounts"] = [*container.get("volumeMounts", []), dict(_MOUNT)]
        container["workingDir"] = FOLDER
        if is_head:
            program = f"set -- {shlex.join(spec.command)}\n{_BEGIN}{_RUN}{_EXIT}"
            container["env"] += variables({_VARIABLE: _as_it_is(program)})
            write = f'printf %s "${{{_VARIABLE}}}" >{_SCRIPT}'
            container["command"] = [" && ".join([*container.get("command", []), write])]
            stop = {"exec": {"command": ["bash", "-c", _STOP, CONTAINER]}}
            container["lifecycle"] = {"preStop": stop}
    return made


def _end_of_ray(thing: Object) -> End | None:
    status = thing.get("status") or {}
    if status.get("jobDeploymentStatus") not in pods.RAY_OVER:
        return None
    if status.get("jobStatus") == "SUCCEEDED":
        return End(succeeded=True, why="", ended=status.get("endTime"))
    told = str(status.get("message") or status.get("reason") or status.get("jobStatus") or "")
    why = "--time is over" if status.get("reason") == _LATE else told.partition("\n")[0]
    return End(succeeded=False, why=why, ended=status.get("endTime"))


RAY_JOB: Final = Shape(
    api=jobs.RAY_API,
    kind="RayJob",
    build=_ray_job,
    end=_end_of_ray,
    selector=lambda name, _: f"{RAY_LABEL}={name}",  # it has one cluster at a time
)

SHAPES: Final = {it.kind: it for it in (JOB_SET, RAY_JOB, JOB)}


def shape(ray: object, array: object) -> Shape:
    """That of a job on Ray, of one of tasks, or of another."""
    return RAY_JOB if ray else JOB if array else JOB_SET
