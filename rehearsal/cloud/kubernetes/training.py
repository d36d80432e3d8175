"""A training that keeps checkpoints, so far as the simulation knows one: by its arguments.

`--checkpoints FOLDER --steps N` is a program that makes 20 steps in a second and begins with the
newest checkpoint of its folder. It makes one every `--every` steps, and one more at SIGTERM. What
is in a claim outlasts the pod; all else goes with it. NODE_STOP_AGE says at which age of its node
it stops; it begins nothing on one that is older.

The container of GKE's driver for buckets beside those of a pod, and what it takes of the disk.

Sources: gcs-fuse-csi-driver 5fcdc04, cmd/webhook/main.go:51-56 (5 GiB where the pod does not say);
its versions in GKE: files are staged whole before 1.33.2-gke.4655000, and streamed since.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud.facts.gke_versions import numbers
from rehearsal.cloud.kubernetes import quantities
from rehearsal.cloud.kubernetes.objects import Object, World

_KEPT: Final = "checkpoints"
_FOLDER: Final = "--checkpoints"
_STEPS: Final = "--steps"
_EVERY: Final = "--every"
_WIDTH: Final = "--width"
_USUAL: Final = {_STEPS: 2000, _EVERY: 100, _WIDTH: 8192}
_STOP_AGE: Final = "NODE_STOP_AGE"
_SHORTEST: Final = 60
_STOPPED: Final = 75
_OVER: Final = "The run of this node is nearly over: nothing is begun on it.\n"
_STEPS_PER_SECOND: Final = 20
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_LABEL: Final = re.compile(r"metadata\.labels\['(.+)'\]")


def is_one(pod: Object) -> bool:
    """Whether a pod runs such a training."""
    return _FOLDER in _words(pod)


def start(world: World, pod: Object, node: Object) -> float | None:
    """Begin with the newest checkpoint; seconds of cloud time to its end, None for none."""
    age = _variable(pod, _STOP_AGE)
    rate = world.request.rate
    rest = int(age) - (world.now - node["_boot"]) / rate if age and rate else float("inf")
    if rest < _SHORTEST:
        return None
    pod["_began"] = _newest(world, pod)
    pod["_began_at"] = world.now
    left = _number(pod, _STEPS) - int(pod["_began"])
    seconds = max(0, left) / _STEPS_PER_SECOND
    pod["_told"] = rest < seconds
    return min(rest, seconds)


def checkpoint_bytes(pod: Object) -> int:
    """The size of a checkpoint: four layers of `--width` by `--width` numbers of four bytes."""
    return 16 * _number(pod, _WIDTH) ** 2


def first_save(pod: Object) -> float:
    """Seconds of cloud time from its begin to its first checkpoint."""
    return _number(pod, _EVERY) / _STEPS_PER_SECOND


def code(pod: Object) -> int:
    """With what it ends: 75 where it stopped before its last step."""
    return _STOPPED if pod.get("_told") else 0


def stop(world: World, pod: Object) -> None:
    """SIGTERM to a pod: what it did is saved."""
    if "_began" in pod:
        _save(world, pod, _reached(world, pod))


def finish(world: World, pod: Object) -> None:
    """The last step is done, or the one at which it was told to stop."""
    if "_began" in pod:
        pod["_stopped"] = _reached(world, pod)
        _save(world, pod, pod["_stopped"] if pod["_told"] else _number(pod, _STEPS))


def lose(world: World, pod: Object) -> None:
    """The node is gone: what was saved last is what there is."""
    if "_began" in pod:
        every = _number(pod, _EVERY)
        _save(world, pod, max(int(pod["_began"]), _reached(world, pod) // every * every))


def log(pod: Object) -> str:
    """What a training wrote so far."""
    if "_began" not in pod:
        return _OVER
    words = f"begins at step {pod['_began']}\n"
    if pod["status"]["phase"] == "Failed" and pod["_told"]:
        words += f"stopped at step {pod['_stopped']}\n"
    if pod["status"]["phase"] == "Succeeded":
        words += f"through at step {_number(pod, _STEPS)}\n"
    return words


def _reached(world: World, pod: Object) -> int:
    rate = world.request.rate
    seconds = (world.now - pod["_began_at"]) / rate if rate else 0.0
    return min(_number(pod, _STEPS), int(pod["_began"]) + int(seconds * _STEPS_PER_SECOND))


def _save(world: World, pod: Object, step: int) -> None:
    claim = _claim(pod)
    if claim and step > _newest(world, pod):
        world.store.put(world.cluster.collection(_KEPT), _key(pod, claim), {"step": step})


def _newest(world: World, pod: Object) -> int:
    claim = _claim(pod)
    if not claim:
        return 0
    found = world.store.get(world.cluster.collection(_KEPT), _key(pod, claim))
    return int(found["step"]) if found else 0


def _key(pod: Object, claim: str) -> str:
    return f"{pod['metadata']['namespace']}/{claim}{_folder(pod)}"


def _claim(pod: Object) -> str:
    """The claim that a training's folder is in; "" where it goes with the pod."""
    folder = _folder(pod)
    container: Mapping[str, Any] = pod["spec"]["containers"][0]
    volumes = {it["name"]: it for it in pod["spec"].get("volumes") or []}
    for mount in container.get("volumeMounts") or []:
        if f"{folder}/".startswith(f"{mount['mountPath'].rstrip('/')}/"):
            source = volumes[mount["name"]].get("persistentVolumeClaim") or {}
            return str(source.get("claimName", ""))
    return ""


def _folder(pod: Object) -> str:
    folder = _after(_words(pod), _FOLDER).rstrip("/")
    return _VARIABLE.sub(lambda found: _variable(pod, found.group(1)), folder)


def _variable(pod: Object, name: str) -> str:
    """A variable of the container: its value, or the pod's label that it is taken from."""
    given = pod["spec"]["containers"][0].get("env") or []
    entry: Mapping[str, Any] = next((it for it in given if it["name"] == name), {})
    path = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
    label = _LABEL.fullmatch(path)
    return str(pod["metadata"]["labels"][label.group(1)] if label else entry.get("value", ""))


def _number(pod: Object, name: str) -> int:
    words = _words(pod)
    return int(_after(words, name)) if name in words else _USUAL[name]


def _after(words: list[str], name: str) -> str:
    """What follows an option where it is last: a script may tell of it before it uses it."""
    return words[len(words) - words[::-1].index(name)]


def _words(pod: Object) -> list[str]:
    """The words of the command, also of one that a shell runs."""
    container: Mapping[str, Any] = next(iter(pod["spec"].get("containers") or []), {})
    given = [*(container.get("command") or []), *(container.get("args") or [])]
    return [word for part in given for word in str(part).split()]


EVICTED: Final = "Pod ephemeral local storage usage exceeds the total limit of containers 5Gi. "
"""What the kubelet says of a pod whose containers have filled what they may have."""

_STREAMS: Final = numbers("1.33.2-gke.4655000")
_PREFIX: Final = "gke-gcsfuse/"
_USUAL_STAGE: Final = "5Gi"


def bursts(world: World, pod: Object) -> bool:
    """Whether a pod's checkpoints are larger than what it stages on their way into a bucket."""
    given = pod["metadata"].get("annotations") or {}
    if given.get(f"{_PREFIX}volumes") != "true" or not is_one(pod):
        return False
    if numbers(str(world.cluster.record["currentMasterVersion"])) >= _STREAMS:
        return False
    most = quantities.parse(given.get(f"{_PREFIX}ephemeral-storage-limit", _USUAL_STAGE))
    return 0 < most < checkpoint_bytes(pod)
