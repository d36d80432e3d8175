"""A job of Run as a JobSet: the user's program on all GPUs of some nodes, begun together.

Its pods are those of the one builder, with the folder, the log and the variables of a job added.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import limits
from provision.kinds.gke.kubernetes import (
    fabric_pods,
    job_attendant,
    kueue,
    pod_secrets,
    run_ends,
    torchrun,
)
from provision.kinds.gke.kubernetes.objects import MANAGER

if TYPE_CHECKING:
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
_GRACE: Final = 120  # seconds from SIGTERM to SIGKILL, as on VMs
_MARGIN: Final = 900
"""Seconds for which nodes are asked for beyond JOB_TIME: their start, and the job's end."""
_JAX_PORT: Final = 29600
_SHARED: Final = str(job_attendant.SHARED)
# The program is no child of a shell's job control, gets the pod's SIGTERM, and its exit code stays
# where the log is kept. What still writes when it has ended has ten seconds.
PROGRAM: Final = f"""\
cd {_SHARED}/folder
JOB_ATTEMPT=$((JOB_RESTART + 1)) && export JOB_ATTEMPT
mkfifo {_SHARED}/said
tee -a {_SHARED}/log <{_SHARED}/said &
tee=$!
told=
trap 'told=told again=yes; kill -TERM "${{child}}" 2>/dev/null' TERM
"$@" >{_SHARED}/said 2>&1 </dev/null &
child=$!
[ -z "${{told}}" ] || kill -TERM "${{child}}"
# A signal ends a wait, not the program.
again=yes
while [ "${{again}}" = yes ]; do again=no; wait "${{child}}"; code=$?; done
(sleep 10; kill "${{tee}}") 2>/dev/null &
wait "${{tee}}"
echo "${{code}} ${{told}}" >{_SHARED}/code.new && mv {_SHARED}/code.new {_SHARED}/code
exit "${{code}}"
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """A job, with all that was decided about it.

    Attributes:
        name: Its name.
        spec: The job as it was asked for.
        pool: Where it runs.
        nodes: How many.
        bucket: The bucket of the state.
        folder: The object with its folder, by its name in the bucket; "" for none.
        told: What the names of the objects that its pods write begin with.
    """

    name: str
    spec: JobSpec
    pool: GpuPool
    nodes: int
    bucket: str
    folder: str
    told: str


def build(facts: ClusterFacts, wanted: Wanted) -> Object:
    """The JobSet of a job."""
    spec, pool = wanted.spec, wanted.pool
    pod = fabric_pods.template(facts, pool, _container(wanted), fabric_pods.Kind.WHOLE)
    _attend(facts, pod["spec"], wanted)
    seconds = spec.seconds or limits.LONGEST_RUN
    end = run_ends.ordered(kueue.run_seconds(pool, seconds + _MARGIN))
    most = min(seconds, end.most) if pool.queued else spec.seconds
    grace = max(_GRACE, end.grace) if pool.queued and not spec.seconds else _GRACE
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace}
    metadata = kueue.job_metadata(facts, pool, "", seconds + _MARGIN)
    metadata["name"] = metadata.pop("generateName") + wanted.name
    metadata["labels"] = {**metadata.get("labels", {}), **OURS}
    if facts.has_queue:
        metadata["labels"][kueue.QUEUE_LABEL] = spec.queue or kueue.LOCAL_QUEUE
        if spec.priority:
            metadata["labels"][_PRIORITY_LABEL] = str(spec.priority)
        if most is not None:
            metadata["labels"][run_ends.LABEL] = str(most)
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
        "metadata": metadata,
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
        {"name": "JOB_NAME", "value": wanted.name},
        {"name": "JAX_COORDINATOR_ADDRESS", "value": f"$(MASTER_ADDR):{_JAX_PORT}"},
        {"name": "JAX_NUM_PROCESSES", "value": "$(NNODES)"},
        {"name": "JAX_PROCESS_ID", "value": "$(NODE_RANK)"},
    ]
    # torchrun takes what it is not told from these.
    names = ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT")
    ours += [{"name": f"PET_{name}", "value": f"$({name})"} for name in names]
    given = [{"name": name, "value": _as_it_is(value)} for name, value in spec.env.items()]
    return {
        "name": CONTAINER,
        "image": spec.image or torchrun.IMAGE,
        "command": [
            *("bash", "-c", PROGRAM, CONTAINER),
            *map(_as_it_is, spec.command),
        ],
        "env": [*(it for it in ours if it["name"] not in spec.env), *given],
        "volumeMounts": [{"name": CONTAINER, "mountPath": _SHARED}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _attend(facts: ClusterFacts, pod: dict[str, Any], wanted: Wanted) -> None:
    """Add what fetches the folder, and what keeps the log until the program has ended."""
    program = Path(job_attendant.__file__).read_text(encoding="utf-8")
    common: Object = {
        "image": pod_secrets.IMAGE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": CONTAINER, "mountPath": _SHARED}],
    }
    run = ["python3", "-c", program]
    fetch = {
        **common,
        "name": FETCH,
        "command": [*run, "fetch", wanted.bucket, wanted.folder]
        if wanted.folder
        else ["mkdir", "-p", "-m", "777", f"{_SHARED}/folder"],
    }
    keep: Object = {
        **common,
        "name": KEEP,
        "restartPolicy": "Always",
        "command": [*run, "keep", wanted.bucket, wanted.told],
        "env": [
            *_labelled("NODE_RANK", RANK_LABEL),
            *_labelled("JOB_RESTART", ATTEMPT_LABEL),
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
    }
    if facts.secrets:  # which are masked in what is kept
        keep["volumeMounts"] = [*common["volumeMounts"], pod_secrets.mount()]
    pod["initContainers"] = [*pod.get("initContainers", ()), fetch, keep]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": CONTAINER, "emptyDir": {}}]


def _as_it_is(text: str) -> str:
    """A text in which Kubernetes finds no references to variables, which are "$(NAME)"."""
    return text.replace("$", "$$")


def _labelled(name: str, label: str) -> list[Object]:
    """A variable with what a label of the pod says."""
    path = f"metadata.labels['{label}']"
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}]
