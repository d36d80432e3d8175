"""The lifecycle rules of a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, Table, expand, flatten

if TYPE_CHECKING:
    from rehearsal.provider.resource import State

_ACTION = Table(
    "google_storage_bucket.lifecycle_rule.action", Field("type"), Field("storage_class")
)
_CONDITION = Table(
    "google_storage_bucket.lifecycle_rule.condition",
    Field("age"),
    Field("created_before"),
    Field("matches_storage_class"),
    Field("num_newer_versions"),
    Field("custom_time_before"),
    Field("days_since_custom_time"),
    Field("days_since_noncurrent_time"),
    Field("noncurrent_time_before"),
    Field("matches_prefix"),
    Field("matches_suffix"),
    Field("size_above_bytes", kind=Kind.INT64),
    Field("size_below_bytes", kind=Kind.INT64),
)

# Zero counts as not configured, unless the attribute says so that is named after the number.
_ZEROES = ("age", "num_newer_versions", "days_since_custom_time", "days_since_noncurrent_time")

_LIVE = {"LIVE": True, "ARCHIVED": False}


def _expand(rules: list[State], scope: Scope) -> dict[str, Any]:
    """All rules; without any, an empty list is sent."""
    return {"rule": [_expand_rule(rule, scope) for rule in rules]}


def _expand_rule(rule: State, scope: Scope) -> dict[str, Any]:
    condition = rule["condition"][0]
    body = expand(_CONDITION, condition, scope)
    for each in _CONDITION:
        if each.name in _ZEROES and condition.get(f"send_{each.name}_if_zero") is True:
            body.setdefault(each.key, 0)
    state = condition.get("with_state")
    if state in _LIVE:
        body["isLive"] = _LIVE[state]
    return {"action": expand(_ACTION, rule["action"][0], scope), "condition": body}


def _flatten(answer: dict[str, Any] | None, scope: Scope) -> list[State]:
    rules = (answer or {}).get("rule") or []
    known = [*(scope.state.get("lifecycle_rule") or []), *[{}] * len(rules)]
    return [_flatten_rule(it, was, scope) for it, was in zip(rules, known, strict=False)]


def _flatten_rule(rule: dict[str, Any], was: State, scope: Scope) -> State:
    before = (was.get("condition") or [{}])[0]
    found = rule.get("condition") or {}
    live = found.get("isLive")
    names = {True: "LIVE", False: "ARCHIVED", None: "ANY"}
    condition = {
        **flatten(_CONDITION, found, scope),
        **{f"send_{name}_if_zero": before.get(f"send_{name}_if_zero") for name in _ZEROES},
        "with_state": names[live],
    }
    action = flatten(_ACTION, rule.get("action") or {}, scope)
    return {"action": [action], "condition": [condition]}


LIFECYCLE = Field("lifecycle_rule", "lifecycle", send=Send.ALWAYS, expand=_expand, flatten=_flatten)
