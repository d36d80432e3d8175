"""google_filestore_instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import labels, operations
from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, Table, expand, flatten
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    parse_import,
    present,
    scope,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_TYPE = "google_filestore_instance"
_COLLECTION = "projects/{project}/locations/{location}/instances"


def _reserved(_: Any, where: Scope) -> str:
    """The range as it was configured: Google may answer one of another form."""
    for network in where.state.get("networks") or []:
        value = network.get("reserved_ip_range")
        return "" if value in (None, UNKNOWN) else str(value)
    return ""


_NETWORK = (
    Field("reserved_ip_range", flatten=_reserved),
    Field("connect_mode", flatten=lambda mode, _: mode or "DIRECT_PEERING"),
)


def _replication(_: Any, where: Scope) -> list[State]:
    """Google answers it elsewhere, as what is in effect."""
    return list(where.state.get("initial_replication") or [])


_EFFECTIVE = Table(
    _TYPE,
    Field(
        "effective_replication",
        "replication",
        kind=Kind.BLOCK,
        send=Send.NEVER,
        fields=(
            Field("role"),
            Field(
                "replicas",
                kind=Kind.BLOCKS,
                fields=(
                    Field("peer_instance"),
                    Field("state"),
                    Field("state_reasons", kind=Kind.STRINGS),
                    Field("last_active_sync_time"),
                ),
            ),
        ),
    ),
)

# What an update changes, in the order of the update mask.
_MUTABLE = Table(
    _TYPE,
    Field("description"),
    Field("file_shares", kind=Kind.BLOCKS),
    Field("deletion_protection_enabled"),
    Field("deletion_protection_reason"),
    Field(
        "performance_config",
        fields=(Field("iops_per_tb", fields=(Field("max_iops_per_tb", "maxIopsPerTb"),)),),
    ),
    Field(
        "directory_services",
        fields=(
            Field("ldap", fields=(Field("users_ou", "usersOu"), Field("groups_ou", "groupsOu"))),
        ),
    ),
    Field("effective_labels", "labels"),
)
_FIELDS = Table(
    _TYPE,
    Field("tier"),
    Field("protocol"),
    Field("kms_key_name"),
    Field("tags", flatten=lambda _, where: where.state.get("tags")),
    Field("networks", fields=_NETWORK),
    Field("initial_replication", "replication", flatten=_replication),
    *_MUTABLE.given,
    Field("create_time", send=Send.NEVER),
    Field("etag", send=Send.NEVER),
)


class FilestoreInstance:
    """An NFS share on a network."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {}

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels and the provider's defaults; what only the provider knows never differs."""
        return labels.plan(api, prior, with_defaults(api, plan))

    def create(self, api: Api, plan: State) -> State:
        """Make the instance."""
        where = scope(api, plan)
        plan = {**plan, "location": _location(where), "project": where.project}
        body = expand(_FIELDS, plan, where, create=True)
        query = {"instanceId": str(plan["name"])}
        try:
            answer = api.plain("file", "POST", _collection(where), body, query=query)
        except GoogleApiError as error:
            raise ProviderError(f"Error creating Instance: {error}") from error
        limit = operations.timeout(plan, "create", _TYPE)
        try:
            operations.named(api, "file", answer, "Creating Instance", limit)
        except (GoogleApiError, OperationError, ProviderError) as error:
            raise ProviderError(f"Error waiting to create Instance: {error}") from error
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The instance, None if Google knows none."""
        where = scope(api, state)
        path = _path(where)
        try:
            answer = api.plain("file", "GET", path)
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing FilestoreInstance "{path}": {error}'
            ) from error
        return {
            **flatten(_FIELDS, answer, where),
            **flatten(_EFFECTIVE, answer, where),
            **labels.read(answer.get("labels"), state),
            "id": path,
            "name": state["name"],
            "project": where.project,
            "location": _location(where),
            "zone": kept(state, "zone", ""),
            "desired_replica_state": kept(state, "desired_replica_state", "READY"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """One PATCH with all that can change; the mask says what does."""
        where = scope(api, plan, prior)
        path = _path(where)
        changed = [it.key for it in _MUTABLE if plan.get(it.name) != prior.get(it.name)]
        if not changed:
            return present(self.read(api, plan))
        body = expand(_MUTABLE, plan, where)
        query = {"updateMask": ",".join(changed)}
        try:
            answer = api.plain("file", "PATCH", path, body, query=query)
        except GoogleApiError as error:
            raise ProviderError(f'Error updating Instance "{path}": {error}') from error
        limit = operations.timeout(plan, "update", _TYPE)
        operations.named(api, "file", answer, "Updating Instance", limit)
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the instance and what is on it.

        Raises:
            OperationError: The operation failed.
        """
        if not is_deletable(state, "FilestoreInstance"):
            return
        try:
            answer = api.plain("file", "DELETE", _path(scope(api, state)))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return
            raise ProviderError(f"Error when reading or editing Instance: {error}") from error
        limit = operations.timeout(state, "delete", _TYPE)
        operations.named(api, "file", answer, "Deleting Instance", limit)

    def import_state(self, api: Api, import_id: str) -> State:
        """From the path, "PROJECT/LOCATION/NAME" or "LOCATION/NAME"."""
        found = parse_import(api, f"{_COLLECTION}/{{name}}", import_id, least=2)
        where = scope(api, found)
        return {**found, "project": where.project, "id": _path(where)}


def _location(where: Scope) -> str:
    """Where the instance is: by its old attribute too, else in the provider's zone."""
    for name in ("location", "zone"):
        value = where.state.get(name)
        if value and value is not UNKNOWN:
            return str(value)
    if not where.zone and not where.region:
        raise ProviderError(
            "Cannot determine location: set in this resource, or set provider-level zone or region"
        )
    return where.zone or where.region


def _collection(where: Scope) -> str:
    return _COLLECTION.format(project=where.project, location=_location(where))


def _path(where: Scope) -> str:
    return f"{_collection(where)}/{where.state['name']}"


RESOURCE = FilestoreInstance()
