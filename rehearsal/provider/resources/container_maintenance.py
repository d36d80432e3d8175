"""When Google may change a cluster: `maintenance_policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_shapes import block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.provider.resource import State

_BUDGET: Final = {
    "minor_version_disruption_interval": "minorVersionDisruptionInterval",
    "patch_version_disruption_interval": "patchVersionDisruptionInterval",
}
_BUDGET_READ: Final = {
    "last_disruption_time": "lastDisruptionTime",
    "last_minor_version_disruption_time": "lastMinorVersionDisruptionTime",
}
_OPTIONS: Final = {"scope": "scope", "end_time_behavior": "endTimeBehavior"}


def expand(value: Any) -> dict[str, Any]:
    """The JSON object; {} when nothing is configured."""
    given = block(value)
    if not given:
        return {}
    window: dict[str, Any] = {}
    if daily := block(given.get("daily_maintenance_window")):
        window["dailyMaintenanceWindow"] = {"startTime": daily["start_time"]}
    if recurring := block(given.get("recurring_window")):
        window["recurringWindow"] = {
            "recurrence": recurring["recurrence"],
            "window": {"startTime": recurring["start_time"], "endTime": recurring["end_time"]},
        }
    if modern := block(given.get("recurring_maintenance_window")):
        window["recurringMaintenanceWindow"] = _recurring(modern)
    if exclusions := given.get("maintenance_exclusion"):
        window["maintenanceExclusions"] = {
            it["exclusion_name"]: _exclusion(it) for it in exclusions
        }
    result: dict[str, Any] = {"window": window}
    if budget := block(given.get("disruption_budget")):
        result["disruptionBudget"] = _filled(budget, _BUDGET)
    return result


def _recurring(given: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "recurrence": given["recurrence"],
        "windowDuration": given["window_duration"],
        "windowStartTime": {
            name: number for name, number in block(given["window_start_time"]).items() if number
        },
    }
    if until := block(given.get("delay_until")):
        result["delayUntil"] = dict(until)
    return result


def _exclusion(given: Mapping[str, Any]) -> dict[str, Any]:
    result = _filled(given, {"start_time": "startTime", "end_time": "endTime"})
    if options := block(given.get("exclusion_options")):
        result["maintenanceExclusionOptions"] = _filled(options, _OPTIONS)
    return result


def _filled(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        wire: given[name]
        for name, wire in names.items()
        if given.get(name) not in (None, UNKNOWN, "")
    }


def flatten(policy: Mapping[str, Any] | None) -> list[State]:
    """The block; [] where the policy says nothing."""
    window = (policy or {}).get("window") or {}
    budget = (policy or {}).get("disruptionBudget")
    if not window and not budget:
        return []
    daily, recurring = window.get("dailyMaintenanceWindow"), window.get("recurringWindow")
    modern = window.get("recurringMaintenanceWindow")
    return [
        {
            "daily_maintenance_window": []
            if daily is None
            else [{"start_time": daily["startTime"], "duration": daily.get("duration", "")}],
            "recurring_window": []
            if recurring is None
            else [
                {
                    "start_time": recurring["window"]["startTime"],
                    "end_time": recurring["window"]["endTime"],
                    "recurrence": recurring["recurrence"],
                }
            ],
            "recurring_maintenance_window": [] if modern is None else [_flat_recurring(modern)],
            "maintenance_exclusion": [
                _flat_exclusion(name, it)
                for name, it in (window.get("maintenanceExclusions") or {}).items()
            ],
            "disruption_budget": []
            if budget is None
            else [{n: budget.get(w, "") for n, w in {**_BUDGET, **_BUDGET_READ}.items()}],
        }
    ]


def _flat_recurring(given: Mapping[str, Any]) -> State:
    start, until = given.get("windowStartTime") or {}, given.get("delayUntil")
    return {
        "recurrence": given.get("recurrence", ""),
        "window_duration": given.get("windowDuration", ""),
        "window_start_time": [{n: start.get(n, 0) for n in ("hours", "minutes", "seconds")}],
        "delay_until": [] if until is None else [dict(until)],
    }


def _flat_exclusion(name: str, given: Mapping[str, Any]) -> State:
    options = given.get("maintenanceExclusionOptions")
    return {
        "exclusion_name": name,
        "start_time": given.get("startTime", ""),
        "end_time": given.get("endTime", ""),
        "exclusion_options": []
        if options is None
        else [{n: options.get(w, "") for n, w in _OPTIONS.items()}],
    }
