"""google_container_cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider import schema
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import PartialError, known
from rehearsal.provider.resources import (
    container_cluster_changes,
    container_cluster_updates,
    container_groups,
    container_requests,
    labels,
    links,
    operations,
)
from rehearsal.provider.resources.container_cluster_shape import ClusterShape
from rehearsal.provider.resources.rest import (
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
    from rehearsal.provider.resources.shapes import Scope

_TYPE = "google_container_cluster"
_DELETE_PATIENCE: Final = 30.0
"""For how long a deletion that Google refuses is tried again, in seconds of cloud time."""

_IMPORT: Final = "projects/{project}/locations/{location}/clusters/{name}"
_KEPT: Final[Mapping[str, Any]] = {
    "deletion_protection": True,
    "remove_default_node_pool": None,
    "allow_net_admin": None,
    "skip_node_pool_refresh": None,
    "ignore_node_count_changes": None,
    "dataplane_optimization_mode": None,
    "desired_emulated_version": None,
}
"""Attributes that Google doesn't know, and what they are when nothing is known."""


# Blocks that Google answers switched off where nobody has configured them.
_SWITCHES: Final = (
    "binary_authorization",
    "network_policy",
    "secret_manager_config",
    "secret_sync_config",
)


def _at(where: Scope) -> str:
    """The location ("projects/p/locations/l")."""
    value = where.state.get("location")
    location = str(value) if is_known(value) and value else where.zone or where.region
    if not location:
        raise ProviderError(
            "Cannot determine location: set in this resource, or set provider-level zone or region"
        )
    return f"projects/{where.project}/locations/{location}"


def _renamed(state: State) -> State:
    """A cluster's `resource_labels` are what other types call `labels`."""
    return {**state, "labels": state.get("resource_labels")}


class Cluster:
    """A control plane, with its first nodes."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "network": links.same_object,
        "subnetwork": links.same_object,
        "private_cluster_config.private_endpoint_subnetwork": links.same_object,
        "min_master_version": lambda _, wanted, state: _is_new_enough(wanted, state),
        **dict.fromkeys(_SWITCHES, lambda prior, wanted, _: wanted == [] and _is_off(prior)),
    }

    def __init__(self) -> None:
        self._shape: ClusterShape | None = None

    @property
    def shape(self) -> ClusterShape:
        """The conversions; made when first needed, as reading the schema takes time."""
        if self._shape is None:
            self._shape = ClusterShape(schema.load("resources", _TYPE).block)
        return self._shape

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels and the provider's defaults."""
        before = None if prior is None else _renamed(prior)
        planned = labels.plan(api, before, _renamed(with_defaults(api, plan)))
        del planned["labels"]
        return planned

    def create(self, api: Api, plan: State) -> State:
        """Make the cluster, and take its default pool away if that is wanted.

        Interrupted while the operation runs, the cluster is kept with the operation's name; the
        next read waits for that first.

        Raises:
            PartialError: An operation failed, and the cluster exists.
        """
        where = scope(api, plan)
        at = _at(where)
        path = f"{at}/clusters/{plan['name']}"
        if container_requests.get(api, path) is not None:
            raise ProviderError(f"resource - {path} - already exists")
        body = {"cluster": self.shape.expand(plan, *_networks(where))}
        limit = operations.timeout(plan, "create", _TYPE)
        answer = container_requests.send(api, "POST", f"{at}/clusters", body)
        made = {**known(plan), "id": path, "location": links.name(at), "project": where.project}
        try:
            container_requests.wait(api, answer, at, "creating GKE cluster", limit)
        except (OperationError, ProviderError) as error:
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            if container_requests.get(api, path) is None:
                raise
            raise PartialError(made, error) from error
        try:
            if plan.get("remove_default_node_pool"):
                _remove_default_pool(api, at, path, limit)
            made = present(self.read(api, made))
            container_requests.check_made(api, path, f"Cluster {plan['name']}", limit)
        except (GoogleApiError, OperationError, ProviderError) as error:
            raise PartialError(made, error) from error
        return made

    def read(self, api: Api, state: State) -> State | None:
        """The cluster, None if Google knows none."""
        where = scope(api, state)
        at = _at(where)
        path = f"{at}/clusters/{state['name']}"
        if is_known(state.get("operation")) and (name := state.get("operation")):
            limit = operations.timeout(state, "create", _TYPE)
            container_requests.wait(api, {"name": name}, at, "resuming GKE cluster", limit)
        try:
            cluster = container_requests.get(api, path)
            sizes = {} if cluster is None else _sizes(api, cluster, state)
        except GoogleApiError as error:
            raise ProviderError(
                f'Error when reading or editing Container Cluster "{state["name"]}": {error}'
            ) from error
        if cluster is None:
            return None
        mine = labels.read(cluster.get("resourceLabels"), _renamed(state))
        mine["resource_labels"] = mine.pop("labels")
        return {
            **self.shape.flatten(cluster, state, sizes),
            **mine,
            **{name: kept(state, name, usual) for name, usual in _KEPT.items()},
            "name": state["name"],
            "id": path,
            "location": links.name(at),
            "project": where.project,
            "operation": "",
            "timeouts": state.get("timeouts"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request."""
        at = _at(scope(api, plan, prior))
        path = f"{at}/clusters/{plan['name']}"
        limit = operations.timeout(plan, "update", _TYPE)
        container_requests.await_rest(api, path, limit)
        change = container_cluster_changes.Change(api, self.shape, path, prior, plan)
        for method, url, body in container_cluster_updates.requests(change):
            answer = container_requests.send(api, method, url, body)
            container_requests.wait(api, answer, at, "updating GKE cluster", limit)
        container_requests.await_rest(api, path, limit)
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the cluster with its pools."""
        if state.get("deletion_protection"):
            raise ProviderError(
                "Cannot destroy cluster because deletion_protection is set to true. Set it to"
                " false to proceed with cluster deletion."
            )
        if not is_deletable(state, "ContainerCluster"):
            return
        at = _at(scope(api, state))
        path = f"{at}/clusters/{state['name']}"
        limit = operations.timeout(state, "delete", _TYPE)
        if not container_requests.rests(api, path, limit):
            return
        try:
            # Whatever Google says, the provider asks again for a while.
            answer = container_requests.send_until(
                api, "DELETE", path, None, _DELETE_PATIENCE, lambda _: True
            )
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting Cluster: {error}") from error
        container_requests.wait(api, answer, at, "deleting GKE cluster", limit)

    def import_state(self, api: Api, import_id: str) -> State:
        """What an import id says of the cluster."""
        found = parse_import(api, _IMPORT, import_id, least=2)
        state = {**found, "project": found.get("project") or api.project}
        path = f"{_at(scope(api, state))}/clusters/{state['name']}"
        container_requests.await_rest(api, path, operations.timeout({}, "create", _TYPE))
        return {**state, "deletion_protection": True, "id": path}


def _networks(where: Scope) -> tuple[str, str]:
    """The paths of network and subnetwork; the latter "" when none is configured."""
    network, subnetwork = where.state.get("network"), where.state.get("subnetwork")
    location = links.name(_at(where))
    region = location if location.count("-") == 1 else location.rpartition("-")[0]
    return (
        links.at("networks", str(network or "default"), project=where.project),
        links.at("subnetworks", str(subnetwork), project=where.project, region=region)
        if is_known(subnetwork) and subnetwork
        else "",
    )


def _remove_default_pool(api: Api, at: str, path: str, limit: float) -> None:
    """Delete the pool that a new cluster has."""
    try:
        answer = container_requests.send(api, "DELETE", f"{path}/nodePools/default-pool")
    except GoogleApiError as error:
        raise ProviderError(f"Error deleting default node pool: {error}") from error
    try:
        container_requests.wait(api, answer, at, "removing default node pool", limit)
    except (OperationError, ProviderError) as error:
        raise ProviderError(f"Error while waiting to delete default node pool: {error}") from error


def _sizes(api: Api, cluster: dict[str, Any], state: State) -> dict[str, int]:
    """How many nodes the cluster's groups are to have."""
    if state.get("skip_node_pool_refresh"):
        return {}
    lists = container_groups.of(api)
    urls = [url for it in cluster.get("nodePools") or [] for url in it["instanceGroupUrls"]]
    found = {url: lists.size(url) for url in urls}
    return {url: size for url, size in found.items() if size is not None}


def _is_new_enough(wanted: Any, state: State) -> bool:
    """Whether the control plane has at least the version that is asked for."""
    there = state.get("master_version")
    if not wanted or not there:
        return False
    return bool(
        container_cluster_changes.numbers(there) >= container_cluster_changes.numbers(wanted)
    ) and (not state.get("min_master_version") or there == wanted)


def _is_off(value: Any) -> bool:
    return not value or not value[0].get("enabled")


RESOURCE = Cluster()
