"""Pods that fetch a folder from a bucket, run a program in it, and keep there what it says.

A container of such a pod is told `fetch BUCKET OBJECT`, or `keep BUCKET PREFIX`. It does either
as the account that its Kubernetes account stands for, if that may. What the program does is as far
known as on VMs.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from rehearsal.cloud import real_programs, secrets, vm_programs
from rehearsal.cloud.kubernetes import shell
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.storage import buckets, objects

_FOLDER: Final = "/run/aiinfra-job/folder"
_RANK: Final = "batch.kubernetes.io/job-completion-index"
_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
_ARRAY: Final = "AIINFRA_ARRAY"
_ACCOUNT: Final = "iam.gke.io/gcp-service-account"
_ARGUMENTS: Final = '"$@"'
_WRITTEN: Final = r'printf %s "\$\{{(\w+)\}}" >{path}(?: |$)'
_SECRET: Final = re.compile(r"^read_secret (\S+) (\S+) (\S+) (\S+)$", re.MULTILINE)
_INDEX: Final = re.compile(r"\$JOB_INDEX\b|\$\{JOB_INDEX\}")
_AGAIN: Final = "AIINFRA_AGAIN"
_HOPELESS: Final = 121
_NEVER_RUNS: Final = (126, 127)
_TOLD_TO_END: Final = 143
_AT_ONCE: Final = 5.0
_BY_SOCKETS: Final = re.compile(r"NCCL INFO Using network (Socket|IB)\b")


def obstacle(world: World, pod: Object, container: Mapping[str, Any]) -> str:
    """With what an init container ends that is to fetch a folder, or secrets; "" where it does."""
    wanted = _SECRET.finditer("\n".join(shell.words(container)))
    for name, project, secret, version in (it.groups() for it in wanted):
        path = f"projects/{project}/secrets/{secret}/versions/{version}"
        if not secrets.readable(world.store, path, _member(world, pod)):
            return secrets.grant(name, path, _member(world, pod))
    asked = _told(container, "fetch")
    if asked is None:
        return ""
    if not buckets.may_read(world.store, asked[0], _member(world, pod), asked[1]):
        return "urllib.error.HTTPError: HTTP Error 403: Forbidden"
    found = objects.live(world.store, *asked)
    return "" if found is not None else "urllib.error.HTTPError: HTTP Error 404: Not Found"


def begin(world: World, pod: Object) -> None:
    """Let the program of a pod begin, if it is such a pod; Ray begins none before it is asked."""
    if "ray.io/node-type" not in pod["metadata"]["labels"]:
        failed = (pod["metadata"].get("annotations") or {}).get(_FAILURES, 0)
        pod["_attempt"] = int(pod["metadata"]["labels"].get(_ATTEMPT, failed)) + 1
        first, _ = _numbers(pod)
        if _rank(pod) < first:  # it only ends
            pod["_seconds"], pod["_only_ends"] = 0.0, True
            return
        number = str(_rank(pod))
        _begin(world, pod, [_INDEX.sub(number, it) for it in _command(pod)])


def begin_on_ray(world: World, pod: Object, entrypoint: str) -> vm_programs.Course | None:
    """Let the head of Ray begin the program that a script of its own has; what it does.

    The script is in a variable, which the command of the head writes into the file that the
    entrypoint runs. None for another entrypoint.
    """
    container = pod["spec"]["containers"][0]
    written = re.search(
        _WRITTEN.format(path=re.escape(entrypoint.removeprefix("bash "))),
        " ".join(shell.words(container)),
    )
    if written is None:
        return None
    variables = {it["name"]: it.get("value", "") for it in container.get("env") or []}
    first = str(variables[written.group(1)]).replace("$$", "$").partition("\ncd ")[0]
    pod["_attempt"] = _number(world, pod)
    return _begin(world, pod, shlex.split(first)[2:])  # set -- PROGRAM ...


def _number(world: World, pod: Object) -> int:
    """Which attempt begins on a head: another one, unless the last one was told to end."""
    bucket, prefix = _kept(pod) or ("", "")
    number = 1
    while objects.live(world.store, bucket, f"{prefix}attempts/{number}") is not None:
        number += 1
    last = objects.live(world.store, bucket, f"{prefix}ends/{number - 1}/0.json")
    if last is not None and json.loads(objects.content(world.store, last))["told"]:
        return number - 1
    _write(world, pod, f"attempts/{number}", b"")
    return number


def _begin(world: World, pod: Object, command: Sequence[str]) -> vm_programs.Course | None:
    if _kept(pod) is None:
        return None
    files: Mapping[str, str] = {}
    for container in pod["spec"].get("initContainers") or []:
        asked = _told(container, "fetch")
        found = objects.live(world.store, *asked) if asked else None
        if found is not None:
            files = vm_programs.files_of(objects.content(world.store, found))
    problem = pod["_nccl"]["problem"]
    why_not = real_programs.OTHERS if real_programs.SCENARIO in world.request.scenarios else ""
    done = vm_programs.course(command, files, "job", _FOLDER, why_not)
    if problem:
        done = vm_programs.Course(_AT_ONCE, 1, [(0.0, problem)])
    pod["_course"] = asdict(done)
    pod["_code"], pause = _judged(pod, done)
    pod["_seconds"], pod["_since"], pod["_kept"] = done.seconds + pause, world.now, 0
    if _rank(pod) == 0 or _numbers(pod) != (0, 0):
        began = json.dumps({"began": world.now, "why": done.why}).encode()
        _write(world, pod, "began.json", began, only_new=True)
    for at, _ in done.said:
        world.wake(world.request.after(at))
    return done


def _judged(pod: Object, done: vm_programs.Course) -> tuple[int, float]:
    """With what the shell of a program ends, and how long it waits before that.

    A variable says how often all is begun again, before which second a failure is the last, and how
    long news of a lost node may take.
    """
    variables = {it["name"]: it.get("value") for it in pod["spec"]["containers"][0].get("env", ())}
    most, least, news = map(int, (variables.get(_AGAIN) or "0 0 0").split())
    restarts = _attempt(pod) - 1
    if not done.code or restarts >= most:
        return done.code, 0.0
    if least and (done.seconds < least or done.code in _NEVER_RUNS):
        return _HOPELESS, news
    return done.code, min(300.0, 10.0 * 2**restarts)


def go_on(world: World, pod: Object) -> None:
    """Keep what the program has said by now."""
    if "_course" in pod:
        _say(world, pod, _said(world, pod))


def end(world: World, pod: Object) -> int:
    """Keep all that the program has said, and how it ended; its exit code."""
    if "_course" not in pod:
        return 0
    _finish(
        world, pod, [line for _, line in pod["_course"]["said"]], pod["_course"]["code"], told=False
    )
    if "ray.io/node-type" in pod["metadata"]["labels"]:
        pod["_course"] = {**pod["_course"], "over": True}
    return int(pod["_code"])


def stop(world: World, pod: Object) -> None:
    """SIGTERM to the program."""
    if "_course" in pod and "over" not in pod["_course"]:
        _finish(world, pod, _said(world, pod), _TOLD_TO_END, told=True)


def log(pod: Object) -> str:
    """What the program has said, as far as it was looked at."""
    return str(pod.get("_text", ""))


def _finish(world: World, pod: Object, lines: Sequence[str], code: int, *, told: bool) -> None:
    _say(world, pod, lines)
    until = pod["_since"] + pod["_course"]["seconds"] * world.request.rate
    ended = {
        "code": code,
        "told": told,
        "began": pod["_since"],
        "ended": min(world.now, until),
        "tail": "\n".join(lines[-20:]),
    }
    ended |= {"vm": pod["spec"]["nodeName"], "rank": _rank(pod)}
    _write(world, pod, f"ends/{_attempt(pod)}/{_rank(pod)}.json", json.dumps(ended).encode())


def _said(world: World, pod: Object) -> list[str]:
    rate = world.request.rate
    return [line for at, line in pod["_course"]["said"] if pod["_since"] + at * rate <= world.now]


def _say(world: World, pod: Object, lines: Sequence[str]) -> None:
    pod["_text"] = "".join(f"{line}\n" for line in lines)
    more = pod["_text"].encode()[pod["_kept"] :]
    if more:
        name = f"logs/{_attempt(pod)}/{_rank(pod)}/{pod['_kept']:015d}"
        _write(world, pod, name, more)
        pod["_kept"] += len(more)
        if _rank(pod) == 0 and _BY_SOCKETS.search(pod["_text"]) and _is_watched(pod):
            _tell_sockets(world, pod)


def _is_watched(pod: Object) -> bool:
    """Whether what keeps the log is told that there is a network of GPUs to be used."""
    beside = (it for it in pod["spec"].get("initContainers") or [] if _told(it, "keep"))
    names = {each["name"] for it in beside for each in it.get("env") or []}
    return "AIINFRA_FABRIC" in names


def _tell_sockets(world: World, pod: Object) -> None:
    """Say in which attempt NCCL first went by sockets."""
    bucket, prefix = _kept(pod) or ("", "")
    found = objects.live(world.store, bucket, f"{prefix}began.json")
    told = json.loads(objects.content(world.store, found)) if found else {}
    if "sockets" not in told:
        told["sockets"] = _attempt(pod)
        _write(world, pod, "began.json", json.dumps(told).encode())


def _write(world: World, pod: Object, name: str, content: bytes, *, only_new: bool = False) -> None:
    kept = _kept(pod)
    if kept is None:
        return
    bucket, prefix = kept
    name = f"{prefix}{name}"
    if only_new and objects.live(world.store, bucket, name) is not None:
        return
    if buckets.may_write(world.store, bucket, _member(world, pod), name):
        plain = replace(world.request, query={}, parameters=(), headers={})
        objects.create(plain, world.store, bucket, {"name": name}, content)


def _kept(pod: Object) -> tuple[str, str] | None:
    """The bucket and the prefix where a pod keeps what it says; None for other pods."""
    init = pod["spec"].get("initContainers") or []
    beside = (_told(it, "keep") for it in init if it.get("restartPolicy") == "Always")
    return next(filter(None, beside), None)


def _told(container: Mapping[str, Any], what: str) -> tuple[str, str] | None:
    match shell.words(container):
        case [*_, done, bucket, path] if done == what:
            return bucket, path
    return None


def _command(pod: Object) -> list[str]:
    """The program and its arguments, without the scripts of bash that run them."""
    words = shell.words(pod["spec"]["containers"][0])
    while words[:2] == ["bash", "-c"] and _ARGUMENTS in words[2]:
        words = words[4:]
    return [word.replace("$$", "$") for word in words]


def _member(world: World, pod: Object) -> str:
    """Whom Google takes a pod for; "" for nobody."""
    name = pod["spec"].get("serviceAccountName", "default")
    found = world.get(world.own("v1", "serviceaccounts"), pod["metadata"]["namespace"], name)
    email = ((found or {"metadata": {}})["metadata"].get("annotations") or {}).get(_ACCOUNT, "")
    return f"serviceAccount:{email}"


def _rank(pod: Object) -> int:
    """The rank of a pod, or the number of its task: its index, after the pods that have none."""
    first, before = _numbers(pod)
    return int(pod["metadata"]["labels"].get(_RANK, 0)) - before + first


def _numbers(pod: Object) -> tuple[int, int]:
    """The number of the first task of such pods, and how many pods come before it."""
    given = {it["name"]: it.get("value") for it in pod["spec"]["containers"][0].get("env", ())}
    first, before = map(int, str(given.get(_ARRAY, "0 0")).split())
    return first, before


def _attempt(pod: Object) -> int:
    return int(pod["_attempt"])
