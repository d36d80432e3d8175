"""google_container_cluster: a control plane, with its first nodes."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError, State, known
from rehearsal.provider.resources import gke, labels, links, pool
from rehearsal.provider.resources.gke import TRUTH, Gke, Request, filled
from rehearsal.provider.resources.rest import present
from rehearsal.provider.resources.shapes import (
    ALWAYS,
    ONE,
    SKIP,
    VIRTUAL,
    Form,
    Rule,
    Scope,
    Send,
    Shape,
    block,
    camel,
    in_set_order,
)

_DELETE_PATIENCE: Final = 30.0
"""For how long a deletion that Google refuses is tried again, in seconds of cloud time."""
_DEFAULT_POOL: Final = "default-pool"

# ------------------------------------------------------------------ what the API has otherwise

# Blocks that Google answers switched off where nobody has configured them.
_SWITCHES: Final = (
    *("binary_authorization", "network_policy", "secret_manager_config", "secret_sync_config"),
)
# Three blocks of the schema are one object of the API today (recorded traffic).
_ENDPOINTS: Final = (
    *("control_plane_endpoints_config", "master_authorized_networks_config"),
    "private_cluster_config",
)
_UNKNOWN_TO_GOOGLE: Final = (
    *("allow_net_admin", "dataplane_optimization_mode", "deletion_protection"),
    *("desired_emulated_version", "ignore_node_count_changes", "remove_default_node_pool"),
    "skip_node_pool_refresh",
)
_READ: Final = Rule(send=Send.NEVER)
# The object is sent, even when nothing is in the list.
_COMPONENTS: Final = Rule(
    "componentConfig",
    send=Send.ALWAYS,
    expand=lambda names, _: {"enableComponents": names} if names else {},
    flatten=lambda config, _: (config or {}).get("enableComponents", []),
)
_DEFAULTS: Final = "node_pool_defaults.node_config_defaults"
_MAINTENANCE: Final[Mapping[str, Rule]] = {
    "daily_maintenance_window": Rule("window.dailyMaintenanceWindow"),
    "maintenance_exclusion": Rule("window.maintenanceExclusions"),
    "maintenance_exclusion.exclusion_options": Rule("maintenanceExclusionOptions"),
    "recurring_maintenance_window": Rule("window.recurringMaintenanceWindow"),
    "recurring_window": Rule("window.recurringWindow"),
    "recurring_window.end_time": Rule("window.endTime"),
    "recurring_window.start_time": Rule("window.startTime"),
}
_RULES: Final[Mapping[str, Rule]] = {
    **pool.NODES,
    **{f"node_pool.{path}": rule for path, rule in pool.RULES.items()},
    **{f"maintenance_policy.{path}": rule for path, rule in _MAINTENANCE.items()},
    **dict.fromkeys(_UNKNOWN_TO_GOOGLE, VIRTUAL),
    **dict.fromkeys(_ENDPOINTS, _READ),
    **dict.fromkeys(
        ("effective_labels", "location", "networking_mode", "operation", "resource_labels"), SKIP
    ),
    **dict.fromkeys(("autopilot_cluster_policy_config", "autopilot_privileged_admission"), SKIP),
    # Each says whether it is off.
    **dict.fromkeys(("addons_config.*.enabled", "addons_config.*.disabled"), ALWAYS),
    "addons_config.ray_operator_config": ONE,
    "cluster_autoscaling": Rule("autoscaling"),
    "cluster_autoscaling.enabled": Rule("enableNodeAutoprovisioning"),
    "datapath_provider": Rule("networkConfig.datapathProvider"),
    "enable_autopilot": Rule("autopilot.enabled", send=Send.ALWAYS),
    "enable_legacy_abac": Rule("legacyAbac.enabled", send=Send.ALWAYS),
    "enable_multi_networking": Rule("networkConfig.enableMultiNetworking"),
    "enable_shielded_nodes": Rule("shieldedNodes.enabled", send=Send.ALWAYS),
    "initial_node_count": _READ,
    "logging_config.enable_components": _COMPONENTS,
    "master_authorized_networks_config.cidr_blocks": Rule(order=lambda it: str(it["cidr_block"])),
    "master_version": Rule("currentMasterVersion"),
    "min_master_version": Rule("initialClusterVersion", Form.KEPT),
    "monitoring_config.enable_components": _COMPONENTS,
    "monitoring_config.managed_prometheus": Rule("managedPrometheusConfig"),
    "monitoring_config.managed_prometheus.enabled": ALWAYS,
    "network": Rule("networkConfig.network", send=Send.NEVER),
    "node_locations": Rule(
        "locations",
        flatten=lambda found, where: [it for it in found or [] if it != where.location],
    ),
    "node_pool": Rule("nodePools", send=Send.NEVER, flatten=lambda *_: []),
    "node_pool_auto_config.node_kubelet_config.insecure_kubelet_readonly_port_enabled": TRUTH,
    f"{_DEFAULTS}.insecure_kubelet_readonly_port_enabled": SKIP,
    "node_version": Rule("currentNodeVersion"),
    "subnetwork": Rule("networkConfig.subnetwork", send=Send.NEVER),
}


# ------------------------------------------------------------------ endpoints


def _endpoints(where: Scope) -> dict[str, Any]:
    """How the control plane is reached, as the API has it; all of what can be said is sent."""
    plan = where.state
    given = block(plan.get("control_plane_endpoints_config"))
    dns, by_ip = (block(given.get(f"{it}_config")) for it in ("dns_endpoint", "ip_endpoints"))
    names = ("allow_external_traffic", "enable_k8s_certs_via_dns", "enable_k8s_tokens_via_dns")
    enabled = by_ip["enabled"] if filled(by_ip, "enabled") else not by_ip
    ip: dict[str, Any] = {"enabled": enabled}
    if enabled:
        private = block(plan.get("private_cluster_config"))
        access = block(private.get("master_global_access_config"))
        subnetwork = private.get("private_endpoint_subnetwork")
        ip |= {
            "enablePublicEndpoint": private.get("enable_private_endpoint") is not True,
            "globalAccess": access.get("enabled") is True,
            "privateEndpointSubnetwork": "" if subnetwork is UNKNOWN else subnetwork or "",
            "authorizedNetworksConfig": _authorized(where),
        }
    return {
        "dnsEndpointConfig": {camel(name): dns.get(name) is True for name in names},
        "ipEndpointsConfig": ip,
    }


def _authorized(where: Scope) -> dict[str, Any]:
    """The networks that may reach the control plane by IP."""
    name = "master_authorized_networks_config"
    given = block(where.state.get(name))
    if not given:
        return {}
    switches = ("gcp_public_cidrs_access_enabled", "private_endpoint_enforcement_enabled")
    return {
        "enabled": True,
        **(_SHAPE.value(name, where.state[name], where) or {}),
        **{camel(it): given[it] for it in switches if filled(given, it)},
    }


def _apart(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """What Google answers of the endpoints, in the three blocks of the schema."""
    config = cluster.get("controlPlaneEndpointsConfig") or {}
    ip = config.get("ipEndpointsConfig") or {}
    authorized = ip.get("authorizedNetworksConfig") or {}
    enabled = ip.get("enabled", False)
    return {
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {}, "ipEndpointsConfig": {}, **config},
        "masterAuthorizedNetworksConfig": authorized if authorized.get("enabled") else None,
        "privateClusterConfig": {
            **(cluster.get("privateClusterConfig") or {}),
            "enablePrivateEndpoint": enabled and not ip.get("enablePublicEndpoint", False),
            "enablePrivateNodes": (cluster.get("networkConfig") or {}).get(
                "defaultEnablePrivateNodes"
            ),
            "masterGlobalAccessConfig": {"enabled": ip.get("globalAccess", False)},
            **{key: ip.get(key) for key in ("privateEndpoint", "publicEndpoint")},
            "privateEndpointSubnetwork": ip.get("privateEndpointSubnetwork"),
        },
    }


# ------------------------------------------------------------------ maintenance and scaling


def _maintenance(wire: dict[str, Any] | None) -> dict[str, Any]:
    """A policy's exclusions are an object, by their names."""
    policy = {"window": {}, **(wire or {})}
    if listed := policy["window"].get("maintenanceExclusions"):
        exclusions = {it.pop("exclusionName"): it for it in listed}
        policy["window"] = {**policy["window"], "maintenanceExclusions": exclusions}
    return policy


def _read_maintenance(policy: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """None where the policy says nothing."""
    window, budget = (policy or {}).get("window") or {}, (policy or {}).get("disruptionBudget")
    exclusions = window.get("maintenanceExclusions") or {}
    listed = [{"exclusionName": name, **it} for name, it in exclusions.items()]
    if not window and not budget:
        return None
    return {"window": {**window, "maintenanceExclusions": listed}, "disruptionBudget": budget}


def _autoscaling(wire: dict[str, Any] | None) -> dict[str, Any]:
    if wire is None:
        return {"enableNodeAutoprovisioning": False}
    # Two blocks go along, even if nobody has configured them.
    return {"autoprovisioningNodePoolDefaults": {}, "defaultComputeClassConfig": {}, **wire}


# ------------------------------------------------------------------ updates


@dataclass(frozen=True)
class Change:
    """An attribute of which a change has a request of its own."""

    attribute: str  # with dots into blocks
    field: str = ""  # the field of the update; "" for the attribute's name with "desired" before it
    wrap: str = ""  # the object around the value
    filled: bool = False  # whether it is sent only if the attribute has a value still
    complete: Callable[[Any], Any] = lambda wire: wire  # what is sent beside, or instead of, None

    @property
    def name(self) -> str:
        """The field of the update."""
        bare = camel(self.attribute.rpartition(".")[2])
        return self.field or f"desired{bare[0].upper()}{bare[1:]}"

    def updates(self, where: Scope) -> Iterator[dict[str, Any]]:
        """What is to be updated, if the attribute changes."""
        before, after = (_at(it or {}, self.attribute) for it in (where.prior, where.state))
        if after is UNKNOWN or before == after or (self.filled and not after):
            return
        outer, _, name = self.attribute.rpartition(".")
        value = self.complete(_SHAPE.inside(outer).value(name, after, where))
        # The Go client leaves a missing block out.
        yield {} if value is None else {self.name: {self.wrap: value} if self.wrap else value}


def _at(state: State, attribute: str) -> Any:
    *outer, name = attribute.split(".")
    for each in outer:
        state = block(state.get(each))
    return state.get(name)


_EARLIER: Final = (
    Change("private_cluster_config.enable_private_nodes", "desiredDefaultEnablePrivateNodes"),
    Change("addons_config", filled=True),
    Change("cluster_autoscaling", complete=_autoscaling),
    Change("enable_shielded_nodes", "desiredShieldedNodes", "enabled"),
    Change("release_channel"),
    Change("enable_multi_networking"),
)
_LATER: Final = (
    Change("database_encryption"),
    Change(
        "workload_identity_config",
        complete=lambda wire: {"workloadPool": ""} if wire is None else wire,
    ),
    Change("logging_config"),
    Change("monitoring_config"),
)
CHANGES: Final = (*_EARLIER, *_LATER)
"""Those that a root of ours sets, in the order of provider 7.45.0."""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _is_new_enough(_: Any, wanted: Any, state: State) -> bool:
    """Whether the control plane has at least the version that is asked for."""
    there = state.get("master_version")
    if not wanted or not there:
        return False
    fits = _numbers(there) >= _numbers(wanted)
    return fits and (not state.get("min_master_version") or there == wanted)


def _renamed(state: State) -> State:
    """A cluster's `resource_labels` are what other types call `labels`."""
    return {**state, "labels": state.get("resource_labels")}


class _Cluster(Gke):
    """A cluster, whose changes Google takes one at a time."""

    @property
    def label(self) -> str:
        return "GKE cluster"

    def title(self, where: Scope) -> str:
        return f'Container Cluster "{where.state["name"]}"'

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        before = None if prior is None else _renamed(prior)
        return super().customize(api, before, _renamed(plan))

    def create(self, api: Api, plan: State) -> State:
        """Make the cluster, and take its default pool away if that is wanted.

        Interrupted while the operation runs, the cluster is kept with the operation's name; the
        next read waits for that first.

        Raises:
            PartialError: An operation failed, and the cluster exists.
        """
        where = self.scope(api, plan)
        self.refuse_second(where)
        path = self.path(where)
        answer = self.ask(api, "POST", path.rpartition("/")[0], {"cluster": _new(where)})
        place = {"location": where.location, "project": where.project}
        made = {**known(plan), "id": path, **place}
        try:
            self.wait(where, answer, "create")
        except (OperationError, ProviderError) as error:
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            if not self.there(api, path):
                raise
            raise PartialError(made, error) from error
        try:
            if plan.get("remove_default_node_pool"):
                self._remove_default_pool(where)
            made = present(self.read(api, made))
            self.check_made(where, f"Cluster {plan['name']}")
        except (GoogleApiError, OperationError, ProviderError) as error:
            raise PartialError(made, error) from error
        return made

    def _remove_default_pool(self, where: Scope) -> None:
        try:
            path = f"{self.path(where)}/nodePools/{_DEFAULT_POOL}"
            answer = self.ask(where.api, "DELETE", path)
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting default node pool: {error}") from error
        try:
            self.wait(where, answer, "create", "removing default node pool")
        except (OperationError, ProviderError) as error:
            raise ProviderError(
                f"Error while waiting to delete default node pool: {error}"
            ) from error

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        """The cluster, and how many nodes each of its pools' groups is to have."""
        found = super().look(where, path)
        try:
            for each in (found or {}).get("nodePools") or []:
                each["sizes"] = gke.lists(where.api).sizes(each["instanceGroupUrls"])
        except GoogleApiError as error:
            what = f"Error when reading or editing {self.title(where)}"
            raise ProviderError(f"{what}: {error}") from error
        return found

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        before = where.state
        policy = _read_maintenance(answer.get("maintenancePolicy"))
        there = {**answer, **_apart(answer), "maintenancePolicy": policy}
        there["labels"] = answer.get("resourceLabels")
        inner = self.shape.inside("node_pool")
        was = before["node_pool"] if filled(before, "node_pool") else []
        pools = {it["name"]: it for it in was}
        routed = not (answer.get("ipAllocationPolicy") or {}).get("useIpAliases")
        return {
            **pool.read_nodes(super().state(where, there), before),
            "resource_labels": labels.read(there["labels"], _renamed(before))["labels"],
            "location": where.location,
            "name": before["name"],
            "networking_mode": "ROUTES" if routed else "VPC_NATIVE",
            "node_pool": [
                pool.read_pool(inner, it, where, pools.get(it["name"], {}), it["sizes"])
                for it in answer.get("nodePools") or []
            ],
            "operation": "",
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request; some say what the cluster is at their moment."""
        where = self.scope(api, plan, prior)
        path, limit = self.path(where), self.limit(where, "update")
        self.await_rest(api, path, limit)
        for request in self._requests(where):
            self.wait(where, self.ask(api, *request), "update")
        self.await_rest(api, path, limit)
        return present(self.read(api, plan))

    def _requests(self, where: Scope) -> Iterator[Request]:
        plan, prior, path = where.state, where.prior or {}, self.path(where)

        def put(update: Any) -> Request:
            return "PUT", path, {"update": update}

        private = (block((it or {}).get("private_cluster_config")) for it in (prior, plan))
        was, now = ({k: v for k, v in it.items() if k != "enable_private_nodes"} for it in private)
        if where.changes(*_ENDPOINTS[:2]) or was != now:
            yield put({"desiredControlPlaneEndpointsConfig": _endpoints(where)})
        yield from (put(it) for change in _EARLIER for it in change.updates(where))
        yield from map(put, _locations(where))
        # A control plane that is older than what is asked for; it is never taken back.
        wanted, there = plan.get("min_master_version"), prior.get("master_version") or ""
        if where.changes("min_master_version") and wanted and _numbers(wanted) > _numbers(there):
            yield put({"desiredMasterVersion": wanted})
        if where.changes("maintenance_policy"):
            yield "POST", f"{path}:setMaintenancePolicy", self._policy(where)
        yield from (put(it) for change in _LATER for it in change.updates(where))
        if where.changes("terraform_labels"):
            body = {
                "resourceLabels": plan.get("terraform_labels") or {},
                "labelFingerprint": prior.get("label_fingerprint"),
            }
            yield "POST", f"{path}:setResourceLabels", body
        default = f"{path}/nodePools/{_DEFAULT_POOL}"
        # Of a cluster whose default pool is gone already, this is no change.
        unwanted = where.changes("remove_default_node_pool") and plan["remove_default_node_pool"]
        if unwanted and self.there(where.api, default):
            yield "DELETE", default, None
        yield from map(put, _others(where))

    def _policy(self, where: Scope) -> dict[str, Any]:
        """The new policy goes with the version of the one that it replaces."""
        old = self.ask(where.api, "GET", self.path(where)).get("maintenancePolicy") or {}
        name = "maintenance_policy"
        if filled(where.state, name):
            policy = _maintenance(self.shape.value(name, where.state[name], where))
        else:
            # Without a policy of its own, the cluster keeps the exclusions that it has.
            exclusions = (old.get("window") or {}).get("maintenanceExclusions")
            policy = {"window": {"maintenanceExclusions": exclusions} if exclusions else {}}
        version = old.get("resourceVersion", "")
        return {"maintenancePolicy": {**policy, "resourceVersion": version}}

    def delete(self, api: Api, state: State) -> None:
        if state.get("deletion_protection"):
            raise ProviderError(
                "Cannot destroy cluster because deletion_protection is set to true. Set it to"
                " false to proceed with cluster deletion."
            )
        super().delete(api, state)

    def remove(self, where: Scope) -> None:
        """Delete the cluster; whatever Google says, it is asked again for a while."""
        if not self.rests(where):
            return
        request = ("DELETE", self.path(where), None)
        try:
            answer = self.send_until(where.api, request, _DELETE_PATIENCE, lambda _: True)
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting Cluster: {error}") from error
        self.wait(where, answer, "delete")

    def import_state(self, api: Api, import_id: str) -> State:
        state = super().import_state(api, import_id)
        where = self.scope(api, state)
        self.await_rest(api, self.path(where), self.limit(where, "create"))
        return {**state, "deletion_protection": True}


def _new(where: Scope) -> dict[str, Any]:
    plan, place = where.state, where.location
    body = {
        "binaryAuthorization": {"enabled": False},
        "networkConfig": {},
        "networkPolicy": {},
        "nodeConfig": {},
        "notificationConfig": {"pubsub": {}},
        **_SHAPE.expand(plan, where),
        "name": plan["name"],
        "network": links.at("networks", plan.get("network") or "default", project=where.project),
    }
    if filled(plan, "subnetwork"):
        region = place if place.count("-") == 1 else place.rpartition("-")[0]
        body["subnetwork"] = links.at(
            "subnetworks", plan["subnetwork"], project=where.project, region=region
        )
    private = block(plan.get("private_cluster_config")).get("enable_private_nodes")
    if private not in (None, UNKNOWN):
        body["networkConfig"]["defaultEnablePrivateNodes"] = private
    body["controlPlaneEndpointsConfig"] = _endpoints(where)
    body["autoscaling"] = _autoscaling(body.get("autoscaling"))
    body["maintenancePolicy"] = _maintenance(body.get("maintenancePolicy"))
    if filled(plan, "node_config"):
        pool.with_variant(body["nodeConfig"])
    if "ipAllocationPolicy" in body:
        body["ipAllocationPolicy"] |= {"stackType": "IPV4", "useIpAliases": True}
    if plan.get("terraform_labels") not in (None, UNKNOWN, {}):
        body["resourceLabels"] = plan["terraform_labels"]
    if filled(plan, "initial_node_count"):
        body["initialNodeCount"] = plan["initial_node_count"]
    return body


def _locations(where: Scope) -> Iterator[dict[str, Any]]:
    """Zones are added first, then taken away: Google does not do both in one request."""
    if not where.changes("node_locations"):
        return
    own = {where.location} if where.location.count("-") > 1 else set()
    wanted, before = (set(it["node_locations"] or []) for it in (where.state, where.prior or {}))
    yield {"desiredLocations": in_set_order([*(wanted | before | own)])}
    if before - wanted:
        yield {"desiredLocations": in_set_order([*(wanted | own)])}


def _others(where: Scope) -> Iterator[dict[str, Any]]:
    """Changes that no root makes, as nearly all attributes of a cluster are changed."""
    special = {it.attribute.partition(".")[0] for it in CHANGES} | {*_ENDPOINTS}
    special |= {"maintenance_policy", "min_master_version", "node_locations"}
    for name in _SHAPE.mutable:
        if name not in special:
            yield from Change(name).updates(where)


_SHAPE: Final = Shape("google_container_cluster", _RULES, hollow=True)
RESOURCE = _Cluster(
    service="container",
    by_client=True,
    collection="projects/{project}/locations/{location}/clusters",
    shape=_SHAPE,
    least=2,
    suppress={
        "network": links.same_object,
        "subnetwork": links.same_object,
        "private_cluster_config.private_endpoint_subnetwork": links.same_object,
        "min_master_version": _is_new_enough,
        **dict.fromkeys(
            _SWITCHES,
            lambda prior, wanted, _: wanted == [] and not (prior and prior[0].get("enabled")),
        ),
    },
)
