"""Pods that failed, and what their Job makes of it.

As Kubernetes 1.34's Job controller does it: a pod is counted once, a rule of the Job's
`podFailurePolicy` may fail the Job at once or leave the pod out, and another pod comes after a
pause that doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rehearsal.cloud.kubernetes.objects import Object

_BACKOFF_LIMIT: Final = 6
"""How many failed pods a Job takes that does not say."""
_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 600.0
_LIMIT_REACHED: Final = "Job has reached the specified backoff limit"


@dataclass(frozen=True)
class Failure:
    """How a Job fails: the reason and the message of its condition."""

    reason: str
    message: str


@dataclass(frozen=True)
class Toll:
    """What some failed pods mean for their Job."""

    counted: int  # how many of them count
    failure: Failure | None  # how the Job fails by a rule of its policy; None if none says so


def toll(job: Object, failed: Iterable[Object]) -> Toll:
    """Judge pods that failed, by the Job's own rules."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    counted, failure = 0, None
    for pod in failed:
        action, words = _judge(rules, pod)
        counted += action != "Ignore"
        if action == "FailJob" and failure is None:
            failure = Failure("PodFailurePolicy", words)
    return Toll(counted, failure)


def beyond_limit(job: Object, failed: int, restarts: int) -> Failure | None:
    """How a Job fails by the number of its failed pods, or of its containers' restarts."""
    limit = int(job["spec"].get("backoffLimit", _BACKOFF_LIMIT))
    if failed > limit or (restarts and restarts >= limit):
        return Failure("BackoffLimitExceeded", _LIMIT_REACHED)
    return None


def pause(failed: int) -> float:
    """Seconds of cloud time from the last of some failures to the next pod."""
    return float(min(_LONGEST_PAUSE, _PAUSE * 2 ** (failed - 1))) if failed else 0.0


def _judge(rules: Iterable[Mapping[str, Any]], pod: Object) -> tuple[str, str]:
    """The action of the first rule that a failed pod meets, and the words for it."""
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    for index, rule in enumerate(rules):
        where = f"matching {rule['action']} rule at index {index}"
        if "onExitCodes" in rule:
            met = _met_by_code(pod, rule["onExitCodes"])
            if met is not None:
                container, code = met
                words = f"Container {container} for pod {name} failed with exit code {code} {where}"
                return rule["action"], words
        elif (kind := _met_by_condition(pod, rule.get("onPodConditions") or [])) is not None:
            return rule["action"], f"Pod {name} has condition {kind} {where}"
    return "Count", ""


def _met_by_code(pod: Object, wanted: Mapping[str, Any]) -> tuple[str, int] | None:
    for it in pod["status"].get("containerStatuses") or []:
        code = (it["state"].get("terminated") or {}).get("exitCode", 0)
        named = wanted.get("containerName") in (None, it["name"])
        inside = code in wanted["values"]
        if code and named and inside == (wanted["operator"] == "In"):
            return it["name"], code
    return None


def _met_by_condition(pod: Object, patterns: Iterable[Mapping[str, str]]) -> str | None:
    wanted = {(it["type"], it.get("status", "True")) for it in patterns}
    for it in pod["status"].get("conditions") or []:
        if (it["type"], it["status"]) in wanted:
            return str(it["type"])
    return None
