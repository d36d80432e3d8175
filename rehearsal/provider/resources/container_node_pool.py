"""google_container_node_pool."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider import schema
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import PartialError, known
from rehearsal.provider.resources import (
    container_groups,
    container_pool_updates,
    container_requests,
    links,
    operations,
)
from rehearsal.provider.resources.container_node_config import with_added_labels
from rehearsal.provider.resources.container_pool import PoolShape
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    parse_import,
    present,
    scope,
    with_defaults,
)
from rehearsal.provider.resources.shapes import kept
from rehearsal.provider.values import is_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_TYPE = "google_container_node_pool"
_IMPORT: Final = "projects/{project}/locations/{location}/clusters/{cluster}/nodePools/{name}"


def _place(api: Api, state: State) -> tuple[str, str]:
    """The path of the pool's cluster, and the location: a cluster's id says all of it."""
    cluster = str(state["cluster"])
    where = scope(api, state)
    project = links.part(cluster, "projects") or where.project
    location = links.part(cluster, "locations") or str(
        state["location"] if is_known(state.get("location")) and state.get("location") else ""
    )
    location = location or where.zone or where.region
    if not location:
        raise ProviderError(
            "Cannot determine location: set in this resource, or set provider-level zone or region"
        )
    at = f"projects/{project}/locations/{location}"
    return f"{at}/clusters/{links.name(cluster)}", at


class NodePool:
    """Some nodes of a cluster that are alike."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {}

    def __init__(self) -> None:
        self._shape: PoolShape | None = None

    @property
    def shape(self) -> PoolShape:
        """The conversions; made when first needed, as reading the schema takes time."""
        if self._shape is None:
            self._shape = PoolShape(schema.load("resources", _TYPE).block)
        return self._shape

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels that Google added are no change; a size is only known where one is set."""
        plan = with_defaults(api, plan)
        if prior is None:
            if isinstance(plan.get("cluster"), str) and links.part(plan["cluster"], "locations"):
                plan["project"] = links.part(plan["cluster"], "projects")
            return plan
        changed = with_added_labels(prior.get("node_config"), plan.get("node_config"))
        return {**plan, "node_config": changed}

    def create(self, api: Api, plan: State) -> State:
        """Make the pool, unless there is one of its name.

        Interrupted while the operation runs, the pool is kept with the operation's name; the next
        read waits for that first.

        Raises:
            PartialError: The pool came with an error.
        """
        cluster, at = _place(api, plan)
        plan = {**plan, "name": _name(plan)}
        path = f"{cluster}/nodePools/{plan['name']}"
        limit = operations.timeout(plan, "create", _TYPE)
        if container_requests.get(api, path) is not None:
            raise ProviderError(f"resource - {path} - already exists")
        answer = self._begin(api, cluster, plan, limit)
        made = {**known(plan), "id": path, "location": links.name(at)}
        try:
            container_requests.wait(api, answer, at, "creating GKE NodePool", limit)
        except (OperationError, ProviderError):
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            # One whose nodes do not come exists all the same, and says itself what is wrong.
            if container_requests.get(api, path) is None:
                raise
        found = present(self.read(api, made))
        try:
            container_requests.check_made(api, path, f"NodePool {plan['name']}", limit)
        except (GoogleApiError, ProviderError) as error:
            raise PartialError(found, error) from error
        return found

    def _begin(self, api: Api, cluster: str, plan: State, limit: float) -> dict[str, Any]:
        """Ask for the pool, again while something else works on the cluster."""
        if _filled(plan.get("initial_node_count")) and _filled(plan.get("node_count")):
            raise ProviderError(
                "Cannot set both initial_node_count and node_count on node pool " + plan["name"]
            )
        body = {"nodePool": self.shape.expand(plan)}
        parent = f"{cluster}/nodePools"
        busy = container_requests.is_busy
        try:
            return container_requests.send_until(api, "POST", parent, body, limit, busy)
        except GoogleApiError as error:
            raise ProviderError(f"error creating NodePool: {error}") from error

    def read(self, api: Api, state: State) -> State | None:
        """The pool, None if Google knows none."""
        cluster, at = _place(api, state)
        path = f"{cluster}/nodePools/{state['name']}"
        lists = container_groups.of(api)
        _await_interrupted(api, state, at)
        try:
            pool = lists.pool(path)
            sizes = (
                []
                if pool is None
                else [lists.size(url) for url in pool.get("instanceGroupUrls") or []]
            )
        except GoogleApiError as error:
            if error.code == NOT_FOUND:  # the cluster
                return None
            raise ProviderError(
                f'Error when reading or editing NodePool "{path}": {error}'
            ) from error
        if pool is None:
            return None
        return {
            **self.shape.flatten(pool, state, [it for it in sizes if it is not None]),
            "id": path,
            "cluster": state["cluster"],
            "location": links.name(at),
            "project": at.split("/")[1],
            "timeouts": state.get("timeouts"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
            "ignore_node_count_changes": state.get("ignore_node_count_changes"),
            "name_prefix": kept(state, "name_prefix", ""),
            "operation": "",
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request."""
        cluster, at = _place(api, plan)
        path = f"{cluster}/nodePools/{plan['name']}"
        limit = operations.timeout(plan, "update", _TYPE)
        container_requests.await_rest(api, path, limit)
        for method, url, body in container_pool_updates.requests(self.shape, cluster, prior, plan):
            busy = container_requests.is_busy
            answer = container_requests.send_until(api, method, url, body, limit, busy)
            container_requests.wait(api, answer, at, "updating GKE node pool", limit)
        # The provider looks at the cluster too before it takes the pool for changed.
        container_requests.await_rest(api, cluster, limit)
        container_requests.await_rest(api, path, limit)
        container_groups.of(api).forget(path, prior.get("instance_group_urls") or [])
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the pool with its nodes."""
        if not is_deletable(state, "ContainerNodePool"):
            return
        cluster, at = _place(api, state)
        path = f"{cluster}/nodePools/{state['name']}"
        limit = operations.timeout(state, "delete", _TYPE)
        if not container_requests.rests(api, path, limit):
            return
        busy = container_requests.is_busy
        try:
            answer = container_requests.send_until(api, "DELETE", path, None, limit, busy)
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting NodePool: {error}") from error
        container_requests.wait(api, answer, at, "deleting GKE NodePool", limit)
        container_groups.of(api).forget(path, state.get("instance_group_urls") or [])

    def import_state(self, api: Api, import_id: str) -> State:
        """What an import id says of the pool; the cluster is known by its bare name then."""
        found = parse_import(api, _IMPORT, import_id, least=3)
        state = {**found, "project": found.get("project") or api.project}
        cluster, _ = _place(api, state)
        path = f"{cluster}/nodePools/{state['name']}"
        for each in (cluster, path):
            container_requests.await_rest(api, each, operations.timeout({}, "create", _TYPE))
        return {**state, "id": path}


def _name(plan: State) -> str:
    """The pool's name: its own, or one that begins as wanted."""
    if is_known(plan.get("name")) and plan.get("name"):
        return str(plan["name"])
    prefix = plan.get("name_prefix")
    return f"{prefix if is_known(prefix) and prefix else 'tf-'}{uuid.uuid4().hex[:26]}"


def _filled(value: Any) -> bool:
    return is_known(value) and bool(value)


def _await_interrupted(api: Api, state: State, at: str) -> None:
    """Wait for the operation that an interrupted run has left in the state."""
    name = state.get("operation")
    if is_known(name) and name:
        limit = operations.timeout(state, "create", _TYPE)
        container_requests.wait(api, {"name": name}, at, "resuming GKE node pool", limit)


RESOURCE = NodePool()
