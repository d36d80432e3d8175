"""What the programs in containers do, so far as the simulation knows them: how long, and its words.

Nothing is run. A program that is not known writes nothing and ends after a minute.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import all_gather, ray_programs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.objects import Object, World

_USUAL_SECONDS: Final = 60.0
_ALL_GATHER_SECONDS: Final = 240.0
_SLEEP: Final = re.compile(r"\s*(\d+)s?\s*")


def seconds(spec: Mapping[str, Any]) -> float:
    """How long the first container of a pod runs, in cloud time."""
    container: Object = next(iter(spec.get("containers") or []), {})
    words = _words(container)
    if all_gather.PROGRAM in " ".join(words):
        return _ALL_GATHER_SECONDS
    arguments = container.get("args") or words[1:]
    asked = _SLEEP.fullmatch(arguments[-1]) if arguments else None
    return float(asked.group(1)) if asked else _USUAL_SECONDS


def log(world: World, pod: Object, container: Mapping[str, Any]) -> str:
    """What a container that has started wrote so far."""
    text = " ".join(_words(container))
    if all_gather.PROGRAM in text:
        return all_gather.log(world, pod, text)
    if container["name"] == RAY_SUBMITTER and pod["status"]["phase"] == "Succeeded":
        return _ray_log(world, pod)
    return ""


def _ray_log(world: World, pod: Object) -> str:
    name = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    kind = world.kind("ray.io/v1", "rayjobs")
    job = world.get(kind, pod["metadata"]["namespace"], name) if kind else None
    if job is None:
        return _RAY_LOG.format(name=name)
    end = "failed" if ray_programs.fails(job) else "succeeded"
    head, _, last = _RAY_LOG.format(name=name).rstrip("\n").rpartition("\n")
    return f"{head}\n{ray_programs.said(job)}{last.replace('succeeded', end)}\n"


RAY_SUBMITTER: Final = "ray-job-submitter"
_RAY_LOG: Final = """\
INFO cli.py: Job submission server address: http://{name}-head-svc.default.svc.cluster.local:8265
SUCC cli.py: Job '{name}' submitted successfully
SUCC cli.py: Job '{name}' succeeded
"""


def _words(container: Mapping[str, Any]) -> list[str]:
    return [str(it) for it in [*(container.get("command") or []), *(container.get("args") or [])]]
