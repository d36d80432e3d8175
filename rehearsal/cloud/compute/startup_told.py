"""What a VM has told of its start-up by a moment, from what was planned when it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rehearsal.cloud.compute import links
from rehearsal.cloud.compute.resources import Resource
from rehearsal.cloud.wire import rfc3339

NAMESPACE = "aiinfra"

_TELLS_EVERY = 12.0
"""The least seconds between what a VM tells: Google takes 10 queries a minute, and the tool's own
look every 15 seconds is one."""

_FIRST_PAUSE = 10.0

_LONGEST_PAUSE = 300.0
"""Seconds before a command that failed is begun again: at first, and after many failures."""

_AT_ONCE = 4  # its failures where no time passes


def attributes(instance: Resource, now: float) -> dict[str, str]:
    """The guest attributes of the tool's namespace that a VM has written by a moment."""
    told = document(instance, now)
    return {"startup": json.dumps(told)} if told else {}


def document(instance: Resource, now: float) -> Resource | None:
    """What a VM has told of its start-up by a moment, of its last boot if of no other."""
    told = instance.get("_startup")
    if not told or now < told["begins"]:
        return (told or {}).get("before")
    known = _told_last(told, now)
    state, step, at = "done", None, told["begins"]
    steps: dict[str, Resource] = {}
    document: Resource = {}
    for name, one, since in _course(told, known):
        steps[name] = one
        at = since
        stops = one["state"] == "failed" and name not in told.get("went-on", {})
        if one["state"] in {"running", "failing"}:
            state, step = "running", name
        elif stops:
            state, step = "failed", name
        if name == "gpu" and one["state"] in {"done", "failed"} and "gpu_check" in told:
            document["gpu_check"] = told["gpu_check"]
        if name == "fabric" and one["state"] in {"done", "failed"} and "fabric-check" in told:
            document["fabric"] = told["fabric-check"]
    return {
        "state": state,
        "step": step,
        "boot": boot_of(instance),
        "number": told["number"],
        "began": rfc3339(told["begins"]),
        "at": rfc3339(at),
        "steps": steps,
        **document,
    }


def _told_last(told: Resource, now: float) -> float:
    """The last moment at which a VM told what was new: it waits between one and the next."""
    last: float = told["begins"]
    gap = _TELLS_EVERY * told["pace"]
    news = told["begins"]
    for step in STEPS:
        if step.name in told["skipped"]:
            continue
        news += seconds(told, step) * told["pace"]
        if news <= last:
            continue
        next_ = max(news, last + gap)
        if next_ > now:
            break
        last = next_
        if step.name == told.get("failing"):
            # What fails again and again has longer pauses than what is told.
            return now if told.get("again") else last
    return last


def has_done(instance: Resource, step: str, now: float) -> bool:
    """Whether a VM has done a step of its start-up by a moment."""
    told = instance.get("_startup")
    if not told or now < told["begins"]:
        return False
    return any(
        name == step and document["state"] == "done" for name, document, _ in _course(told, now)
    )


def leaves_out(instance: Resource, step: str) -> bool:
    """Whether a VM's start-up leaves a step out."""
    return step in (instance.get("_startup") or {}).get("skipped", {})


def fabric(instance: Resource) -> str:
    """What a VM's start-up sets NCCL up for, as its configuration calls it; "" for nothing."""
    return str((instance.get("_startup") or {}).get("fabric") or "")


def gpu_check(instance: Resource) -> Resource:
    """What a VM's look at its GPUs shows."""
    found: Resource = (instance.get("_startup") or {}).get("gpu_check") or {}
    return found


def shared_folder(instance: Resource) -> tuple[str, str] | None:
    """Bucket and state folder, below which a VM and its peers share a folder."""
    found = (instance.get("_startup") or {}).get("shared")
    return None if found is None else (found[0], found[1])


def has_ray(instance: Resource) -> bool:
    """Whether a VM is part of a Ray cluster."""
    return bool((instance.get("_startup") or {}).get("ray"))


def has_slurm(instance: Resource) -> bool:
    """Whether a VM is a node of Slurm."""
    return bool((instance.get("_startup") or {}).get("slurm"))


def boot_of(instance: Resource) -> str:
    """What the VM's kernel calls this boot."""
    number = (instance.get("_startup") or {}).get("number", 1)
    return hashlib.sha256(f"{instance['id']} {number}".encode()).hexdigest()[:32]


def proxy_url(instance: Resource, now: float) -> str | None:
    """The address of a VM's notebook, once it has one."""
    proxy = (instance.get("_startup") or {}).get("proxy")
    if proxy is None or now < proxy:
        return None
    digest = hashlib.sha256(instance["selfLink"].encode()).hexdigest()[:16]
    region = links.last(instance["zone"]).rpartition("-")[0]
    return f"{digest}-dot-{region}.notebooks.googleusercontent.com"


def _course(told: Resource, now: float) -> Iterator[tuple[str, Resource, float]]:
    """The steps begun by a moment: name, what is told of it, and when that was told."""
    moment = told["begins"]
    for step in STEPS:
        if step.name in told["skipped"]:
            at = {"at": rfc3339(moment), "detail": told["skipped"][step.name]}
            yield step.name, {"state": "skipped", **at}, moment
            continue
        began, moment = moment, moment + seconds(told, step) * told["pace"]
        if now < moment:
            yield step.name, {"state": "running", "at": rfc3339(began)}, began
            return
        if step.name == told.get("failing") and told.get("again"):
            yield step.name, *_failures(told, step, moment, now)
            return
        if step.name == told.get("failing"):
            at = {"at": rfc3339(moment), "detail": told.get("failure", step.failure)}
            yield step.name, {"state": "failed", **at}, moment
            return
        if step.name in (went_on := told.get("went-on", {})):
            at = {"at": rfc3339(moment), "detail": went_on[step.name]}
            yield step.name, {"state": "failed", **at}, moment
            continue
        yield step.name, {"state": "done", "at": rfc3339(moment)}, moment


def _failures(told: Resource, step: Step, failed: float, now: float) -> tuple[Resource, float]:
    """What is told of a command that fails, and is begun again for ever."""
    number = 1
    while True:
        pause = min(_FIRST_PAUSE * 2 ** (number - 1), _LONGEST_PAUSE)
        following = failed + (pause + step.seconds) * told["pace"]
        # Where no time passes, some have passed already.
        if now < following or (told["pace"] == 0 and number == _AT_ONCE):
            break
        number, failed = number + 1, following
    detail = told.get("failure", step.failure)
    again = f"{detail}, attempt {number}; begun again after {pause:g} seconds"
    counted = {"attempt": number, "failures": number, "code": told.get("code", 1)}
    return {"state": "failing", "at": rfc3339(failed), "detail": again, **counted}, failed


AGENT = "agent"

INSTALLING = frozenset({"local-ssd", "mounts", "gpu", "fabric", "ops-agent", "ray", "slurm"})
"""The steps that install something, unless it is there already."""

_FOUND_SECONDS = 5.0  # how long such a step takes where all is there; a guess

DRIVER_SECONDS = 480.0
"""How long Google's installer takes for a driver, its reboot with it; a guess."""


@dataclass(frozen=True)
class Step:
    """One step of the start-up."""

    name: str  # such as "mounts"
    seconds: float  # how long it takes, in cloud time
    # why a VM of this configuration leaves it out; "" when it doesn't
    why_not: Callable[[Resource], str]
    failure: str = ""  # its last lines, should it fail; "" for one that never does


def _unless(key: str, reason: str) -> Callable[[Resource], str]:
    return lambda config: "" if config.get(key) else reason


def _no_fabric(config: Resource) -> str:
    if not config.get("gpus"):
        return "this VM has no GPUs"
    return "" if config.get("fabric") else "NCCL uses the one network interface that there is"


def _no_notebook(config: Resource) -> str:
    if not config.get("notebook"):
        return "no notebook is wanted"
    return "" if config["_has_notebook"] else "the image has no notebook"


# In the order in which they run.
STEPS = (
    Step("way-out", 5.0, _unless("outbound", "no proxy, certificates or mirrors are set")),
    Step(
        "local-ssd", 10.0, lambda config: "" if config["_local_ssds"] else "no Local SSD is there"
    ),
    Step("mounts", 15.0, _unless("mounts", "nothing is to be mounted")),
    Step("files", 10.0, _unless("files", "no files were copied")),
    Step(
        "gpu",
        30.0,
        _unless("gpus", "no GPUs are expected"),
        "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n"
        "nvidia-smi shows fewer GPUs than the machine has",
    ),
    Step("fabric", 60.0, _no_fabric),
    Step("ops-agent", 40.0, _unless("ops_agent", "the Ops Agent is switched off")),
    Step(AGENT, 15.0, lambda _: ""),
    Step("ray", 45.0, _unless("ray", "no Ray is wanted")),
    Step("slurm", 45.0, _unless("slurm", "no Slurm is wanted")),
    Step("notebook", 10.0, _no_notebook),
    Step(
        "command",
        25.0,
        _unless("has_command", "no command was given"),
        "Traceback (most recent call last):\n"
        '  File "/usr/aiinfra/copy/train.py", line 3, in <module>\n'
        "ModuleNotFoundError: No module named 'transformers'\n"
        "the command ended with exit code 1",
    ),
)


def seconds(told: Resource, step: Step) -> float:
    """How long a step takes on a VM, in cloud time."""
    if told.get("baked") and step.name in INSTALLING:
        return _FOUND_SECONDS
    return step.seconds + (DRIVER_SECONDS if told.get("installs") and step.name == "gpu" else 0.0)


def length(skipped: Resource) -> float:
    """How long the steps that are not left out take together, in cloud time."""
    return sum(step.seconds for step in STEPS if step.name not in skipped)
