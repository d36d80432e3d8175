"""google_compute_instance_group_manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider import durations
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import PartialError, known
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.fields import Scope, expand, flatten, is_zero
from rehearsal.provider.resources.group_configuration import (
    ALONE,
    FIELDS,
    PATCHED,
)
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    parse_import,
    place,
    present,
    scope,
    with_defaults,
)
from rehearsal.provider.resources.stateful import STATEFUL, stateful_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_TYPE = "google_compute_instance_group_manager"
_COLLECTION = "projects/{project}/zones/{zone}/instanceGroupManagers"
_DELETE_TRIES = 20
_DELETE_GAP = 2.0


class InstanceGroupManager:
    """A managed group of VMs in one zone."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "version.instance_template": lambda prior, wanted, _: _same_template(prior, wanted),
        "auto_healing_policies.health_check": links.same_path,
        "resource_policies.workload_policy": links.same_path,
        # Google's default.
        "update_policy.replacement_method": lambda prior, wanted, _: (
            is_zero(wanted) and prior in (None, "", "SUBSTITUTE")
        ),
    }

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's project and deletion policy are known before the apply."""
        del prior
        return with_defaults(api, plan)

    def create(self, api: Api, plan: State) -> State:
        """Insert the group, and wait for its VMs if so configured.

        Interrupted while the operation runs, the group is kept with the operation's name; the next
        read waits for that first.

        Raises:
            PartialError: The operation failed, or the VMs did not come.
        """
        where = scope(api, plan)
        body = {
            **expand(FIELDS, plan, where, create=True),
            "statefulPolicy": stateful_policy(where),
        }
        try:
            answer = api.plain("compute", "POST", place(_COLLECTION, where), body)
        except GoogleApiError as error:
            raise ProviderError(f"Error creating InstanceGroupManager: {error}") from error
        made = {**known(plan), "id": _path(where), "zone": where.zone, "project": where.project}
        limit = operations.timeout(plan, "create", _TYPE)
        activity = "Creating InstanceGroupManager"
        try:
            operations.compute(api, answer, where.project, activity, limit)
            self._wait_for_instances(where)
        except Exception as error:
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            raise PartialError(made, error) from error
        return present(self.read(api, made))

    def read(self, api: Api, state: State) -> State | None:
        """The group; one whose creation was interrupted only after that has ended."""
        where = scope(api, state)
        if not is_zero(state.get("operation")) and not _resumed(where):
            return None
        try:
            answer = api.plain("compute", "GET", _path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Instance Group Manager "{state["name"]}": {error}'
            ) from error
        return {
            **flatten(FIELDS, answer, where),
            **flatten(
                STATEFUL, (answer.get("statefulPolicy") or {}).get("preservedState", {}), where
            ),
            "id": _path(where),
            "project": where.project,
            "zone": links.name(answer.get("zone") or where.zone),
            "operation": "",
            "wait_for_instances": kept(state, "wait_for_instances", False),
            "wait_for_instances_status": kept(state, "wait_for_instances_status", "STABLE"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """PATCH, then the named ports, then the size, each only if it changes."""
        where = scope(api, plan, prior)
        for request, problem in _changes(where):
            method, path, body, query = request
            try:
                answer = api.plain("compute", method, path, body, query=query)
            except GoogleApiError as error:
                raise ProviderError(f"Error updating {problem}: {error}") from error
            limit = operations.timeout(plan, "update", _TYPE)
            operations.compute(api, answer, where.project, f"Updating {problem}", limit)
        self._wait_for_instances(where)
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the group, and all its VMs; any refusal is tried again for 40 s."""
        if not is_deletable(state, "ComputeInstanceGroupManager"):
            return
        where = scope(api, state)
        for left in reversed(range(_DELETE_TRIES + 1)):
            try:
                answer = api.plain("compute", "DELETE", _path(where))
                break
            except GoogleApiError as error:
                if not left:
                    raise ProviderError(
                        f"Error deleting instance group manager: {error}"
                    ) from error
                api.sleep(_DELETE_GAP, deaf=True)
        limit = operations.timeout(state, "delete", _TYPE)
        activity = "Deleting InstanceGroupManager"
        operations.compute(api, answer, where.project, activity, limit)

    def import_state(self, api: Api, import_id: str) -> State:
        """From the path, or the last parts of "PROJECT/ZONE/NAME"."""
        found = parse_import(api, f"{_COLLECTION}/{{name}}", import_id)
        path = _path(scope(api, found))
        return {**found, "id": path, "wait_for_instances_status": "STABLE"}

    def _wait_for_instances(self, where: Scope) -> None:
        """Look until all VMs are there; no interrupt ends this (recorded traffic)."""
        if where.state.get("wait_for_instances") is not True:
            return
        updated = where.state.get("wait_for_instances_status") == "UPDATED"
        limit = operations.timeout(where.state, "create", _TYPE)
        gap, waited = 0.2, 0.0
        while not _is_ready(where.api.plain("compute", "GET", _path(where)), updated=updated):
            if waited > limit:
                raise ProviderError(
                    "timeout while waiting for state to become 'created' (last state: 'creating',"
                    f" timeout: {durations.text(limit)})"
                )
            where.api.pause(gap, deaf=True)
            waited += gap
            gap = min(gap * 2, 10.0)


def _is_ready(group: dict[str, Any], *, updated: bool) -> bool:
    status = group.get("status") or {}
    configs = (status.get("stateful") or {}).get("perInstanceConfigs") or {}
    checks = [status.get("isStable")]
    if updated:
        checks += [
            configs.get("allEffective"),
            (status.get("versionTarget") or {}).get("isReached"),
            (status.get("allInstancesConfig") or {}).get("effective"),
        ]
    return all(checks)


def _resumed(where: Scope) -> bool:
    """Wait for the operation of an interrupted create; whether it made the group."""
    operation = {"name": where.state["operation"], "zone": where.zone}
    limit = operations.timeout(where.state, "create", _TYPE)
    activity = "Creating InstanceGroupManager"
    try:
        operations.compute(where.api, operation, where.project, activity, limit)
    except (GoogleApiError, OperationError, ProviderError):
        return False
    return True


_Request = tuple[str, str, dict[str, Any] | None, dict[str, str]]


def _changes(where: Scope) -> Iterator[tuple[_Request, str]]:
    """The requests of an update, and what the provider calls that."""
    plan, prior = where.state, where.prior or {}
    changed = [each for each in PATCHED if plan.get(each.name) != prior.get(each.name)]
    # A change is sent even where its new value is empty.
    patch = {each.key: each.to_wire(plan.get(each.name), where) for each in changed}
    if any(plan.get(each.name) != prior.get(each.name) for each in STATEFUL):
        patch["statefulPolicy"] = stateful_policy(where)
    if patch:
        body = {"fingerprint": prior.get("fingerprint"), **patch}
        yield ("PATCH", _path(where), body, {}), "managed group instances"
    port, size = ALONE
    if plan.get("named_port") != prior.get("named_port"):
        group = _path(where).replace("/instanceGroupManagers/", "/instanceGroups/")
        ports = {"namedPorts": port.to_wire(plan.get("named_port"), where)}
        yield ("POST", f"{group}/setNamedPorts", ports, {}), "InstanceGroupManager"
    if plan.get("target_size") != prior.get("target_size"):
        wanted = {"size": str(size.to_wire(plan.get("target_size"), where))}
        yield ("POST", f"{_path(where)}/resize", None, wanted), "InstanceGroupManager"


def _path(where: Scope) -> str:
    return f"{place(_COLLECTION, where)}/{where.state['name']}"


def _same_template(prior: Any, wanted: Any) -> bool:
    """Whether two links mean one template; numbers count only where both have one."""
    if not prior or not wanted:
        return False
    (old, _, old_id), (new, _, new_id) = (
        prior.partition("?uniqueId="),
        wanted.partition("?uniqueId="),
    )
    if old_id and new_id and old_id != new_id:
        return False
    return links.same_path(old, new, {})


RESOURCE = InstanceGroupManager()
