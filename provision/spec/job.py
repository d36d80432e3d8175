"""What a job is to be: the settings and the command line, with every default resolved."""

from __future__ import annotations

import itertools
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision import words
from provision.catalogue import machines, names
from provision.codes import Code
from provision.documents import json_object
from provision.errors import SettingsError
from provision.settings import pairs
from provision.settings.choices import KIND, Priority, RestartOn, asking_for
from provision.settings.gke import LOCAL_QUEUE
from provision.settings.job_options import MOST_TASKS, JobArray
from provision.settings.storage import JobMount
from provision.spec import packages, pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.settings.model import Settings
    from provision.settings.pairs import Secret

_Pool = TypeVar("_Pool")
_Word = TypeVar("_Word", bound=str)

_LONGEST: Final = 23
_GPU_MAKER: Final = re.compile("^nvidia-(tesla-)?")
_LAUNCHERS: Final = frozenset(
    {"accelerate", "bash", "deepspeed", "env", "python", "python3", "sh", "torchrun", "uv"}
)
"""Programs whose names say nothing of a job: their script's does."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job as it is asked for."""

    name: str  # its name without the number that it gets
    command: tuple[str, ...]  # the program and its arguments; no shell reads them
    nodes: int | None = None  # how many machines; None for as many as the cluster's kind gives
    gpus: int | None = None  # how many GPUs of each of them; None for all, on whole machines
    # its tasks, each on one machine or a part of it; None for one program on all at once
    array: JobArray | None = None
    restarts: int = 0  # how often it is begun again after a failure
    # after which failures of its own; None for those of a program that had run for a while
    restart_on: RestartOn | None = None
    seconds: int | None = None  # how long it may run; None for no limit
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # more of its environment
    secrets: tuple[Secret, ...] = ()  # those that it alone gets
    mounts: tuple[JobMount, ...] = ()  # the buckets that are mounted for it alone
    ends_cluster: bool = False  # whether the cluster goes with it (`--destroy-after`)
    image: str | None = None  # the container image that it runs in; None for the usual one
    machine: str | None = None  # the machine type, or the GPU, of the pool that it is for
    queue: str | None = None  # the queue in which it waits; None for that of all
    priority: Priority | None = None  # its priority in the queue; None for none
    ray: bool = False  # whether it is a job of Ray's on GKE (`--ray`)
    commit: str = ""  # the commit of git that its folder is of; "" for none
    files: str = ""  # the SHA-256 of a folder that has travelled before; "" for none

    @property
    def is_guarded(self) -> bool:
        """Whether what looks like a waste of its machines is told."""
        return self.env.get("AIINFRA_GUARD") != "no"


def of(  # noqa: PLR0913 - what the command line says
    settings: Settings,
    command: Sequence[str],
    env: Mapping[str, str],
    secrets: Mapping[str, str] = MappingProxyType({}),
    mounts: Sequence[str] = (),
    *,
    ray: bool = False,
) -> JobSpec:
    """The job that settings and a command line ask for."""
    _require_once(env, secrets)
    line = settings.job_command
    words = tuple(command) or (("/bin/bash", "-c", line) if line else ())
    if not words:
        raise SettingsError(
            "Run has no command",
            code=Code.MISSING_SETTING,
            why="a job is a program with its arguments",
            fix="write it behind --, as in: Run -- torchrun train.py; or set JOB_COMMAND",
            setting="JOB_COMMAND",
        )
    spec = JobSpec(
        name=settings.job_name or name_of(line.split() if line and not command else words),
        command=words,
        nodes=settings.job_nodes,
        gpus=settings.job_gpus,
        array=settings.job_array,
        restarts=settings.job_restarts,
        restart_on=settings.job_restart_on,
        seconds=settings.job_time,
        env={it: text for it, text in {**settings.job_env, **env}.items() if it not in secrets},
        secrets=_secrets(settings, secrets),
        mounts=_mounts(settings, mounts, ray=ray),
        image=settings.job_image,
        machine=settings.job_machine,
        queue=settings.job_queue,
        priority=settings.job_priority,
        ray=ray,
    )
    return _judged(settings, spec)


def again(  # noqa: PLR0913, PLR0917 - what it was, and what is said in place of that
    settings: Settings,
    name: str,
    asked: Mapping[str, Any],
    command: Sequence[str],
    env: Mapping[str, str],
    secrets: Mapping[str, str] = MappingProxyType({}),
    mounts: Sequence[str] = (),
    *,
    ray: bool,
) -> JobSpec:
    """A job as it was submitted by this name, with what a command line says in place of that."""
    _require_once(env, secrets)

    def chosen(option: str, before: Any) -> Any:
        is_said = f"job_{option}" in settings.given
        return getattr(settings, f"job_{option}") if is_said else before

    def one_of(words: Iterable[_Word], key: str) -> _Word | None:
        return next((it for it in words if it == asked.get(key)), None)

    whole, text = json_object.whole, json_object.text
    before = json_object.texts(asked.get("command"))
    its_env, its_secrets = json_object.inner(asked.get("env")), referred(asked)
    setup = packages.line_of(before)
    if "job_setup" in settings.given:
        setup = packages.wanted(settings.job_setup, ())
    image = chosen("image", text(asked.get("image")) or None)
    on_ray = ray or asked.get("ray") is True
    # One at a path that has had another goes before that.
    paths = {it.removesuffix(":ro").partition(":")[2] for it in mounts}
    kept = [_said(it) for it in mounted(asked) if it["path"] not in paths]
    spec = JobSpec(
        name=chosen("name", name.rpartition("-")[0] or "job"),
        command=packages.wrapped(tuple(command) or packages.bare(before), setup, image or ""),
        nodes=chosen("nodes", whole(asked.get("nodes"))),
        gpus=chosen("gpus", whole(asked.get("gpus"))),
        array=chosen("array", array_of(asked)),
        restarts=chosen("restarts", whole(asked.get("restarts")) or 0),
        restart_on=chosen("restart_on", one_of(RestartOn, "restart_on")),
        seconds=chosen("time", whole(asked.get("seconds"))),
        env={it: text(its_env[it]) for it in its_env if it not in secrets} | dict(env),
        secrets=_secrets(
            settings, {it: its_secrets[it] for it in its_secrets if it not in env} | dict(secrets)
        ),
        mounts=_mounts(settings, (*kept, *mounts), ray=on_ray),
        image=image,
        machine=chosen("machine", text(asked.get("wants")) or None),
        queue=chosen("queue", text(asked.get("queue")) or None),
        priority=chosen("priority", one_of(Priority, "priority")),
        ray=on_ray,
        commit=text(asked.get("commit")),
        files=text(asked.get("files")),
    )
    return _judged(settings, spec)


def array_of(asked: Mapping[str, Any]) -> JobArray | None:
    """The tasks of a job that was asked for; None for a job without them."""
    found = json_object.inner(asked.get("array"))
    first, last, most = (json_object.whole(found.get(it)) for it in ("first", "last", "most"))
    if first is None or last is None or not 0 <= first <= last <= MOST_TASKS:
        return None
    return JobArray(first, last, most)


def referred(asked: Mapping[str, Any]) -> dict[str, str]:
    """The secrets of a job that was asked for: variable -> the path of a version."""
    found = json_object.inner(asked.get("secrets"))
    return {name: json_object.text(path) for name, path in found.items()}


def mounted(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The buckets that were to be mounted for a job that was asked for."""
    return [
        {
            "bucket": json_object.text(it.get("bucket")),
            "path": json_object.text(it.get("path")),
            "read_only": it.get("read_only") is True,
        }
        for it in json_object.objects(asked.get("mounts"))
    ]


def _said(mount: Mapping[str, Any]) -> str:
    return f"{mount['bucket']}:{mount['path']}" + (":ro" if mount["read_only"] else "")


def _mounts(settings: Settings, said: Sequence[str], *, ray: bool) -> tuple[JobMount, ...]:
    """The buckets that are named so, each at a path of its own."""
    found: list[JobMount] = []
    if said and (settings.is_ray or settings.is_slurm or ray):
        on_ray = settings.is_ray or ray
        raise SettingsError(
            f"--mount has no effect {'on Ray' if on_ray else f'with {settings.kind_words}'}",
            code=Code.WITHOUT_EFFECT,
            why="its tasks run on any machine, in processes that are no job's"
            if on_ray
            else "what Slurm begins is the job's own user from the first, and only root can mount",
            fix=f"GCS_MOUNT_LIST={said[0].removesuffix(':ro')}, and Create"
            + ("" if ray else " --replace-vms"),
            setting="--mount",
        )
    taken = {it.path for it in settings.gcs_mount_list or ()}
    taken |= {it.path for it in settings.nfs_fileshare_list or ()}
    states = (settings.terraform_gcs_path or "").removeprefix("gs://").partition("/")[0]
    for text in said:
        fix = "--mount my-bucket:/mnt/data, or my-bucket:/mnt/data:ro"
        try:
            mount = JobMount.of(text)
        except ValueError:
            raise _no_mount(
                f"--mount {text} names no bucket with a path below /mnt",
                "a job's bucket is mounted at /mnt/<name>, where nothing of the system is",
                fix,
            ) from None
        if mount.path in taken or "/mnt" in taken:
            raise _no_mount(
                f"--mount has {mount.path}, which is mounted already",
                "a path has one mount, of the job or of the cluster",
                f"--mount {mount.bucket}:{mount.path}-2",
            )
        if mount.bucket == states or mount.bucket.startswith(names.STATE_BUCKETS):
            raise _no_mount(
                f"--mount has {mount.bucket}, a bucket of Terraform states",
                "each program of the job could then change what the next run applies",
                "another bucket for the data",
            )
        taken.add(mount.path)
        found.append(mount)
    return tuple(found)


def _no_mount(what: str, why: str, fix: str) -> SettingsError:
    return SettingsError(what, code=Code.INVALID_COMMAND_LINE, why=why, fix=fix, setting="--mount")


def _require_once(env: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    """See that a command line gives each variable one value."""
    twice = next((it for it in secrets if it in env), "")
    if twice:
        raise SettingsError(
            f"--env and --secret both give {twice}",
            code=Code.INVALID_COMMAND_LINE,
            why="a variable has one value",
            fix="remove one of them",
        )


def _secrets(settings: Settings, named: Mapping[str, str]) -> tuple[Secret, ...]:
    """The secrets that are named so, each by its whole path."""
    found = []
    for name, reference in named.items():
        try:
            found.append(pairs.secret_of(name, reference, settings.project_id))
        except ValueError:
            # Neither is echoed: either may be the secret itself.
            raise SettingsError(
                "--secret names no secret of Secret Manager, or a variable that can't have one",
                code=Code.INVALID_COMMAND_LINE,
                why="it takes a variable that no shell rests on (letters, digits and _), and the"
                " name of a secret, never its value",
                fix="--secret HF_TOKEN=hf-token, =hf-token:3 for that version, or"
                " =projects/<project>/secrets/hf-token",
                setting="--secret",
            ) from None
    return tuple(found)


def _judged(settings: Settings, spec: JobSpec) -> JobSpec:
    """A job with the machines that its parts have, if it asks for nothing that it can't have."""
    if spec.ray and not settings.is_gke:
        raise SettingsError(
            f"--ray has no effect with {settings.kind_words}",
            code=Code.WITHOUT_EFFECT,
            why="there each job is one of Ray's" if settings.is_ray else "its VMs have no Ray",
            fix="remove --ray"
            + ("" if settings.is_ray else f", or take {asking_for('ray')} for Ray on VMs"),
            setting=KIND,
        )
    in_parts = "--array" if spec.array else "--gpus" if spec.gpus else ""
    is_lost = spec.restart_on is RestartOn.LOST
    if spec.ray and (in_parts or is_lost):
        raise SettingsError(
            f"{in_parts or '--restart-on lost'} has no effect with --ray",
            code=Code.WITHOUT_EFFECT,
            why="there a job's tasks say what they need: num_gpus"
            if in_parts
            else "KubeRay begins a job again after any failure",
            fix="remove it" + ("" if in_parts else ", or --restarts as well"),
            setting=in_parts or "--restart-on",
        )
    if spec.array and spec.nodes not in {None, 1}:
        raise SettingsError(
            f"--array does not go together with --nodes {spec.nodes}",
            code=Code.INVALID_COMMAND_LINE,
            why="each task is one machine or a part of it",
            fix="--nodes 1, or remove --array",
            setting="--array",
        )
    # Who asks for a part of a machine means one, and not that part of all.
    is_one = spec.nodes is None and (spec.array or spec.gpus)
    return replace(spec, nodes=1) if is_one else spec


def is_same(spec: JobSpec, files: str, name: str, asked: Mapping[str, Any]) -> bool:
    """Whether a job that was asked for is what this one would be, but for its number.

    `files`: the SHA-256 of this one's folder; "" for none.
    """
    own = {
        "command": list(spec.command),
        "env": dict(spec.env),
        "image": spec.image or "",
        "wants": spec.machine or "",
        "files": files,
        "ray": spec.ray,
        # A person who says another one means it.
        "seconds": spec.seconds,
        "restarts": spec.restarts,
        "restart_on": spec.restart_on or "",
        "gpus": spec.gpus,
        "array": spec.array and asdict(spec.array),
        **({"nodes": spec.nodes} if spec.nodes else {}),
    }
    has_same = {it.name: it.resource for it in spec.secrets} == referred(asked)
    has_same = has_same and [it.model_dump() for it in spec.mounts] == mounted(asked)
    # One of an earlier version lacks what was not asked for then.
    has_same = has_same and all((own[it] or None) == (asked.get(it) or None) for it in own)
    return _is_of(spec.name, name) and has_same


def require_possible(spec: JobSpec, settings: Settings) -> None:
    """See that a cluster that is made by these settings can run the job.

    What only the cluster knows, such as the rest of its queue's quota, is asked once it is there.
    """
    is_gke = settings.is_gke
    made = pools.of(settings) if is_gke else [pools.group(settings)]
    meant = chosen(spec.machine, [(it, it.machine_type, it.gpu_type or "") for it in made])
    largest = max(meant, key=lambda it: it.gpus)
    require_gpus(spec, largest.machine_type, largest.gpus)
    fitting = (it for it in meant if it.gpus >= (spec.gpus or 0))
    pool = max(fitting, key=lambda it: it.size.most)
    if (spec.nodes or 1) > pool.size.most:
        raise SettingsError(
            f"The job wants {words.counted(spec.nodes or 1, 'machine')}, and {pool.name} gets"
            f" {pool.size.most}",
            why="all begin together, so it would wait for ever",
            fix=f"--nodes {pool.size.most}, or more machines: INSTANCE_COUNT"
            + (", GKE_MAX_NODE_COUNT or GKE_NODE_POOLS" if is_gke else ""),
            setting="--nodes",
        )
    if is_gke:
        require_network(spec, pool.machine_type, pool.gpus)
    names = [LOCAL_QUEUE, *(it.name for it in settings.kueue_queues or ())]
    require_offered(
        spec, queues=names if settings.enable_kueue else [], ray=settings.enable_ray_operator
    )


def chosen(machine: str | None, offered: Sequence[tuple[_Pool, str, str]]) -> list[_Pool]:
    """The pools that a job can mean by `--machine`, of all with their machine types and GPUs."""
    found = [
        pool
        for pool, machine_type, gpu in offered
        if machine in {None, machine_type, gpu}
        # "h100" is any H100, "h100-80gb" not that of A3 Mega.
        or f"{_GPU_MAKER.sub('', gpu)}-".startswith(f"{machine}-")
    ]
    if not found:
        there = dict.fromkeys(f"{it} ({gpu})" if gpu else it for _, it, gpu in offered)
        raise SettingsError(
            f"The cluster has no nodes of {machine}",
            why=f"its pools have {', '.join(there)}",
            fix="--machine with one of these, or a pool of it in GKE_NODE_POOLS and Create",
            setting="--machine",
        )
    return found


def require_gpus(spec: JobSpec, machine_type: str, gpus: int) -> None:
    """See that a machine has as many GPUs as a job wants of each."""
    if (spec.gpus or 0) > gpus:
        raise SettingsError(
            f"The job wants {words.counted(spec.gpus or 0, 'GPU')} of each machine, and"
            f" {machine_type} has {gpus}",
            why="what it can't have it would wait for without end",
            fix=f"--gpus {gpus}, and --nodes for more of them" if gpus else "remove --gpus",
            setting="--gpus",
        )


def require_network(spec: JobSpec, machine_type: str, gpus: int) -> None:
    """See that parts of nodes that are to work together can: their GPUs have no network there."""
    machine = machines.lookup(machine_type)
    is_part = spec.gpus is not None and spec.gpus < gpus
    if is_part and (spec.nodes or 1) > 1 and machine and machine.gpu_network:
        raise SettingsError(
            f"The job wants {spec.gpus} of the {gpus} GPUs of {spec.nodes} nodes",
            why=f"on GKE the network of the GPUs of {machine_type} is that of one pod on each node",
            fix=f"--gpus {gpus}, or --nodes 1",
            setting="--gpus",
        )


def require_offered(spec: JobSpec, *, queues: Sequence[str], ray: bool) -> None:
    """See that a cluster has the queue and the operator that a job wants."""
    if (spec.queue or spec.priority) and not queues:
        raise SettingsError(
            "The cluster has no queue",
            code=Code.WITHOUT_EFFECT,
            why="it is made without ENABLE_KUEUE",
            fix="remove --queue and --priority, or ENABLE_KUEUE=yes and Create",
            setting="--queue" if spec.queue else "--priority",
        )
    if spec.ray and not ray:
        raise SettingsError(
            "The cluster has no Ray operator",
            code=Code.WITHOUT_EFFECT,
            why="it is made without ENABLE_RAY_OPERATOR",
            fix="remove --ray, or ENABLE_RAY_OPERATOR=yes and Create",
            setting="ENABLE_RAY_OPERATOR",
        )
    if spec.queue and spec.queue not in queues:
        raise SettingsError(
            f"The cluster has no queue {spec.queue}",
            why=f"it has {', '.join(queues)}",
            fix="name one of them, or add it to KUEUE_QUEUES and Create",
            setting="--queue",
        )


def name_of(words: Sequence[str]) -> str:
    """A name for a job: that of the script that it runs, or of the program."""
    # The line of a shell is one word.
    parts = [it for word in words for it in word.split()]
    for program, option in itertools.pairwise(parts):
        if option == "-c" and re.fullmatch(r"python[0-9.]*", PurePath(program).name):
            parts = [program]  # what follows is code, and names nothing
            break
    own = [it for it in parts if not it.startswith("-")]
    named = [PurePath(word).name for word in own] or ["job"]
    script = next((it for it in named if it.endswith((".py", ".sh"))), "")
    told = script or next((it for it in named if it not in _LAUNCHERS), named[0])
    stem = told.lower().removesuffix(".py").removesuffix(".sh")
    bare = re.sub(r"[^a-z0-9]+", "-", stem)
    return bare.lstrip("-0123456789")[:_LONGEST].rstrip("-") or "job"


def numbered(name: str, taken: Sequence[str]) -> str:
    """The name with the number that follows those that are taken: "train-3"."""
    numbers = [int(it[len(name) + 1 :]) for it in taken if _is_of(name, it)]
    return f"{name}-{max(numbers, default=0) + 1}"


def newest(name: str, known: Sequence[str]) -> str | None:
    """The job that a name means: itself, or the newest of all that have it before their number."""
    if name in known:
        return name
    mine = [it for it in known if _is_of(name, it)]
    return max(mine, key=lambda it: int(it[len(name) + 1 :]), default=None)


def _is_of(name: str, job: str) -> bool:
    return re.fullmatch(rf"{re.escape(name)}-[0-9]{{1,6}}", job) is not None
