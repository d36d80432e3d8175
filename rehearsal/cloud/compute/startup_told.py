"""What a VM has told of its start-up by a moment, from what was planned when it was made."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, startup_steps
from rehearsal.cloud.instants import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rehearsal.cloud.compute.resources import Resource

NAMESPACE = "aiinfra"

_TELLS_EVERY = 12.0
"""The least seconds between what a VM tells: Google takes 10 queries a minute, and the tool's own
look every 15 seconds is one."""

_FIRST_PAUSE = 10.0

_LONGEST_PAUSE = 300.0
"""Seconds before a command that failed is begun again: at first, and after many failures."""

_AT_ONCE = 4
"""Its failures where no time passes."""


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
    for step in startup_steps.STEPS:
        if step.name in told["skipped"]:
            continue
        news += startup_steps.seconds(told, step) * told["pace"]
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
    for step in startup_steps.STEPS:
        if step.name in told["skipped"]:
            at = {"at": rfc3339(moment), "detail": told["skipped"][step.name]}
            yield step.name, {"state": "skipped", **at}, moment
            continue
        began, moment = moment, moment + startup_steps.seconds(told, step) * told["pace"]
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


def _failures(
    told: Resource, step: startup_steps.Step, failed: float, now: float
) -> tuple[Resource, float]:
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
