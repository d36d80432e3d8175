"""Managed groups of VMs, and the resize requests that ask for VMs in them once."""

from collections.abc import Mapping
from typing import Any

from rehearsal.provider import durations
from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import PartialError, State, known
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.rest import NOT_FOUND, Rest, present, scope
from rehearsal.provider.resources.shapes import (
    ALWAYS,
    MANY,
    ONE,
    SKIP,
    VIRTUAL,
    Rule,
    Scope,
    Shape,
    is_zero,
)
from rehearsal.provider.resources.template import unique_link

_GROUPS = "projects/{project}/zones/{zone}/instanceGroupManagers"
_DELETE_TRIES = 20
_DELETE_GAP = 2.0

_LIMITS = {
    f"{name}_{unit}": Rule(f"{wire}.{unit}")
    for name, wire in (("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable"))
    for unit in ("fixed", "percent")
}
"""How many VMs more, or fewer, a change may have: a share or a number."""
# Blocks whose absence is sent as an empty object.
_SAID = ("instance_lifecycle_policy", "standby_policy", "update_policy")
_STATEFUL = ("stateful_disk", "stateful_external_ip", "stateful_internal_ip")


class _Group(Rest):
    def title(self, where: Scope) -> str:
        return f'Instance Group Manager "{where.state["name"]}"'

    def no_update(self, where: Scope) -> str:
        del where
        return "Error updating managed group instances"

    def encode(self, body: dict[str, Any], where: Scope, *, create: bool) -> dict[str, Any]:
        """A share or a number is null beside the other, and so is an action that nobody limits."""
        body |= {key: {} for key in map(self.shape.key, _SAID) if body.get(key, 0) is None}
        if policy := body.get("updatePolicy"):
            policy.setdefault("mostDisruptiveAllowedAction", None)
            for key in ("maxSurge", "maxUnavailable"):
                amount = policy.get(key) or {"fixed": 0}
                policy[key] = {"fixed": None, "percent": None, **amount}
        if policy := body.get("instanceLifecyclePolicy"):
            policy.setdefault("onRepair", {})
        for version in body.get("versions", ()):
            version.setdefault("targetSize", {})
        if "resourcePolicies" in body:
            body["resourcePolicies"] = body["resourcePolicies"] or {"workloadPolicy": None}
        if create:
            return {**body, "statefulPolicy": {"preservedState": {}}}
        return {"fingerprint": (where.prior or {}).get("fingerprint"), **body}

    def create(self, api: Api, plan: State) -> State:
        """Insert the group, and wait for its VMs if so configured; PartialError if that failed."""
        where = scope(api, plan)
        body = self.shape.expand(plan, where, create=True)
        answer = self.insert(where, self.encode(body, where, create=True))
        made = {**known(plan), "id": self.id(where), "zone": where.zone, "project": where.project}
        try:
            self.wait(where, answer, "create")
            self._wait_for_instances(where)
        except Exception as error:
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            raise PartialError(made, error) from error
        return present(self.read(api, made))

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        """One whose creation was interrupted is looked for only after that has ended."""
        if not is_zero(name := where.state.get("operation")):
            try:
                self.wait(where, {"name": name, "zone": where.zone}, "create")
            except (GoogleApiError, OperationError, ProviderError):
                return None
        return super().look(where, path)

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        zone = links.name(answer.get("zone") or where.zone)
        return {**super().state(where, answer), "zone": zone, "operation": ""}

    def update(self, api: Api, prior: State, plan: State) -> State:
        """PATCH what changes, even where its new value is empty, then the size."""
        where = scope(api, plan, prior)
        changed = [it for it in self.shape.mutable if it != "target_size" and where.changes(it)]
        if changed:
            values = {it: self.shape.value(it, plan.get(it), where) for it in changed}
            body = {self.shape.key(it): value for it, value in values.items()}
            self._send(where, "PATCH", "", self.encode(body, where, create=False))
        if where.changes("target_size"):
            self._send(where, "POST", "/resize", query={"size": str(plan["target_size"] or 0)})
        self._wait_for_instances(where)
        return present(self.read(api, plan))

    def _send(self, where: Scope, method: str, action: str, body: Any = None, **query: Any) -> None:
        what = self.no_update(where) if body else f"Error updating {self.label}"
        try:
            answer = self.ask(where.api, method, self.path(where) + action, body, **query)
        except GoogleApiError as error:
            raise ProviderError(f"{what}: {error}") from error
        self.wait(where, answer, "update", what.replace("Error updating", "Updating"))

    def remove(self, where: Scope) -> None:
        """Delete the group, and all its VMs; any refusal is tried again for 40 s."""
        for left in reversed(range(_DELETE_TRIES + 1)):
            try:
                answer = self.ask(where.api, "DELETE", self.path(where))
                break
            except GoogleApiError as error:
                if not left:
                    what = "Error deleting instance group manager"
                    raise ProviderError(f"{what}: {error}") from error
                where.api.sleep(_DELETE_GAP, deaf=True)
        self.wait(where, answer, "delete")

    def _wait_for_instances(self, where: Scope) -> None:
        """Look until all VMs are there; no interrupt ends this (recorded traffic)."""
        if where.state.get("wait_for_instances") is not True:
            return
        limit = operations.timeout(where.state, "create", self.shape.of)
        gap, waited = 0.2, 0.0
        while not self.ask(where.api, "GET", self.path(where)).get("status", {}).get("isStable"):
            if waited > limit:
                raise ProviderError(
                    "timeout while waiting for state to become 'created' (last state: 'creating',"
                    f" timeout: {durations.text(limit)})"
                )
            where.api.pause(gap, deaf=True)
            waited += gap
            gap = min(gap * 2, 10.0)


def _same_template(prior: Any, wanted: Any, state: State) -> bool:
    """Whether two links mean one template; numbers count only where both have one."""
    (old, _, old_id), (new, _, new_id) = (
        str(link or "").partition("?uniqueId=") for link in (prior, wanted)
    )
    differ = old_id and new_id and old_id != new_id
    return not differ and links.same_path(old, new, state)


def _v1(link: str | None, _: Scope) -> str:
    return links.v1(link or "")


RESOURCE = _Group(
    collection=_GROUPS,
    shape=Shape(
        "google_compute_instance_group_manager",
        {
            **dict.fromkeys(_SAID, ALWAYS),
            **dict.fromkeys(_STATEFUL, VIRTUAL),  # no root has any
            **dict.fromkeys(("wait_for_instances", "wait_for_instances_status"), VIRTUAL),
            "auto_healing_policies": MANY,
            "description": ALWAYS,
            "instance_group": Rule(flatten=_v1),
            "instance_group_manager_id": Rule("id"),
            "named_port": Rule("namedPorts"),
            "operation": SKIP,
            "resource_policies": ALWAYS,
            "standby_policy.initial_delay_sec": ALWAYS,
            "target_size": ALWAYS,
            "target_size_policy": ONE,
            **{f"update_policy.{name}": rule for name, rule in _LIMITS.items()},
            "version": Rule("versions"),
            "version.instance_template": Rule(
                expand=lambda link, _: unique_link(link), flatten=_v1
            ),
            "zone": SKIP,
        },
    ),
    suppress={
        "version.instance_template": _same_template,
        "resource_policies.workload_policy": links.same_path,
        # Google's default.
        "update_policy.replacement_method": lambda prior, wanted, _: (
            is_zero(wanted) and prior in (None, "", "SUBSTITUTE")
        ),
    },
)

_OPEN = ("CREATING", "ACCEPTED")


class _ResizeRequest(Rest):
    """VMs asked for once, never changed; one that has not ended is cancelled before it goes."""

    def remove(self, where: Scope) -> None:
        if where.state.get("state") in _OPEN:
            try:
                answer = self.ask(where.api, "POST", f"{self.path(where)}/cancel")
            except GoogleApiError as error:
                if error.code == NOT_FOUND:
                    return
                raise ProviderError(f"{self.no_delete(where)}: {error}") from error
            self.wait(where, answer, "delete", "Cancelling the resize request")
        super().remove(where)


RESIZE_REQUEST = _ResizeRequest(
    collection=f"{_GROUPS}/{{instance_group_manager}}/resizeRequests",
    shape=Shape(
        "google_compute_resize_request",
        {
            "instance_group_manager": VIRTUAL,  # it is part of the path alone
            "zone": Rule(
                # As the provider's generated code has it, however odd.
                expand=lambda _, where: f"projects/{where.project}/global/zones/{where.zone}",
                flatten=lambda link, where: links.name(link or where.zone),
            ),
        },
    ),
    suppress={"zone": links.same_object, "instance_group_manager": links.same_object},
)
