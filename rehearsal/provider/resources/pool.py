"""google_container_node_pool: some nodes of a cluster that are alike."""

import dataclasses
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError, State, known
from rehearsal.provider.resources import gke, links
from rehearsal.provider.resources.gke import TRUTH, Gke, Request, filled, is_busy
from rehearsal.provider.resources.rest import NOT_FOUND, place, present, scope
from rehearsal.provider.resources.shapes import (
    ALWAYS,
    INT64,
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
)

_NODES: Final[Mapping[str, Rule]] = {
    "boot_disk.provisioned_iops": INT64,
    "boot_disk.provisioned_throughput": INT64,
    "boot_disk.size_gb": INT64,
    "effective_taints": SKIP,
    "gpudirect_strategy": Rule("gpuDirectConfig.gpuDirectStrategy"),
    "guest_accelerator": Rule("accelerators"),
    "guest_accelerator.count": Rule("acceleratorCount", Form.INT64),
    "guest_accelerator.type": Rule("acceleratorType"),
    "kubelet_config.insecure_kubelet_readonly_port_enabled": TRUTH,
    # What the agent of logging is to do; Google leaves the usual one out.
    "logging_variant": Rule(
        "loggingConfig.variantConfig.variant", flatten=lambda value, _: value or "DEFAULT"
    ),
    "taint": Rule("taints"),
}
NODES: Final = {f"node_config.{path}": rule for path, rule in _NODES.items()}
"""What nodes are made of, in clusters and pools."""

_LIMITS: Final = (
    *("min_node_count", "max_node_count", "total_min_node_count", "total_max_node_count"),
)
_MINIMA: Final = frozenset({"totalMinNodeCount", "minNodeCount"})
RULES: Final[Mapping[str, Rule]] = {
    **NODES,
    **dict.fromkeys(("cluster", "ignore_node_count_changes", "name_prefix"), VIRTUAL),
    **dict.fromkeys(("location", "managed_instance_group_urls", "node_count", "operation"), SKIP),
    **dict.fromkeys(("maintenance_policy", "node_drain_config"), ONE),
    # In a new pool all limits are sent.
    **{f"autoscaling.{name}": ALWAYS for name in _LIMITS},
    "initial_node_count": Rule(send=Send.NEVER),
    "max_pods_per_node": Rule("maxPodsConstraint.maxPodsPerNode", Form.INT64),
    "network_config.enable_private_nodes": ALWAYS,
    "node_config": Rule("config"),
    "node_locations": Rule("locations"),
    "queued_provisioning.enabled": ALWAYS,
}

# What of the nodes one request changes together; it says all of it, changed or not.
_TOGETHER: Final = ("disk_size_gb", "disk_type", "machine_type", "storage_pools", "boot_disk")
# Older attribute, newer one in `boot_disk`, and the same in JSON.
_DISK: Final = (
    ("disk_type", "disk_type", "diskType", "diskType"),
    ("disk_size_gb", "size_gb", "diskSizeGb", "sizeGb"),
)
# What a request of its own wraps the value in.
_WRAPPED: Final = {
    **{name: name for name in ("taints", "tags")},
    **dict.fromkeys(("resourceLabels", "labels"), "labels"),
}
_LOGGING: Final = "logging_variant"
# Attribute -> the field of the one request that changes it, and whether that request says once
# more which pool is meant.
_OWN: Final[Mapping[str, tuple[str, bool]]] = {
    "version": ("nodeVersion", True),
    "node_locations": ("locations", False),
    "upgrade_settings": ("upgradeSettings", False),
    "network_config": ("nodeNetworkConfig", True),
}
_ADDED: Final = "goog-gke"  # how labels begin that Kubernetes Engine adds to machines


def with_variant(nodes: dict[str, Any]) -> dict[str, Any]:
    """The provider always names where the variant of logging would be."""
    nodes.setdefault("loggingConfig", {}).setdefault("variantConfig", {})
    return nodes


def read_nodes(state: State, before: State) -> State:
    """Of the taints only those that the state knows, if it knows the block."""
    for nodes in state.get("node_config") or []:
        nodes["effective_taints"] = nodes["taint"]
        if was := block(before.get("node_config")):
            mine = {taint["key"] for taint in was.get("taint") or []}
            nodes["taint"] = [taint for taint in nodes["taint"] if taint["key"] in mine]
    return state


def read_pool(
    shape: Shape, pool: Mapping[str, Any], where: Scope, before: State, sizes: Sequence[int]
) -> State:
    """The attributes of a pool, alone or in a cluster, with the wanted sizes of its groups."""
    limits, urls = pool.get("autoscaling") or {}, pool.get("instanceGroupUrls") or []
    document = {"management": {}, **pool, "autoscaling": limits if limits.get("enabled") else None}
    count = sum(sizes) // len(sizes) if sizes else 0
    if before.get("ignore_node_count_changes") and filled(before, "node_count"):
        count = before["node_count"]
    managers = [url.replace("/instanceGroups/", "/instanceGroupManagers/") for url in urls]
    return {
        **read_nodes(shape.flatten(document, dataclasses.replace(where, state=before)), before),
        "managed_instance_group_urls": managers,
        "node_count": count,
    }


class _NodePool(Gke):
    """A pool; its cluster is named by its id, or alone."""

    @property
    def label(self) -> str:
        return "GKE NodePool"

    def title(self, where: Scope) -> str:
        return f'NodePool "{self.path(where)}"'

    def scope(self, api: Api, state: State, prior: State | None = None) -> Scope:
        """A cluster's id says all of where it is."""
        where, cluster = scope(api, state, prior), str(state["cluster"])
        return dataclasses.replace(
            where,
            project=links.part(cluster, "projects") or where.project,
            location=links.part(cluster, "locations") or where.location,
        )

    def cluster(self, where: Scope) -> str:
        """The path of the pool's cluster."""
        at = place("projects/{project}/locations/{location}", where)
        return f"{at}/clusters/{links.name(where.state['cluster'])}"

    def path(self, where: Scope) -> str:
        return f"{self.cluster(where)}/nodePools/{where.state['name']}"

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels that Google added to machines are no change."""
        plan = super().customize(api, prior, plan)
        nodes = block(plan.get("node_config"))
        if prior is None:
            if project := links.part(str(plan.get("cluster")), "projects"):
                plan["project"] = project
        elif (was := block(prior.get("node_config"))) and nodes:
            wanted, there = nodes.get("resource_labels"), was.get("resource_labels") or {}
            if wanted is not UNKNOWN:
                added = {key: it for key, it in there.items() if key.startswith(_ADDED)}
                nodes["resource_labels"] = {**added, **(wanted or {})} or wanted
                plan["node_config"] = [nodes]
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Make the pool, unless there is one of its name; PartialError if it came with an error."""
        plan = {**plan, "name": _name(plan)}
        where = self.scope(api, plan)
        self.refuse_second(where)
        if filled(plan, "initial_node_count") and filled(plan, "node_count"):
            what = "Cannot set both initial_node_count and node_count on node pool"
            raise ProviderError(f"{what} {plan['name']}")
        request = ("POST", f"{self.cluster(where)}/nodePools", {"nodePool": self._body(where)})
        try:
            answer = self.send_until(api, request, self.limit(where, "create"), is_busy)
        except GoogleApiError as error:
            raise ProviderError(f"error creating NodePool: {error}") from error
        made = {**known(plan), "id": self.path(where), "location": where.location}
        try:
            self.wait(where, answer, "create")
        except (OperationError, ProviderError):
            if api.cancel.is_set():
                return {**made, "operation": answer.get("name")}
            # One whose nodes do not come exists all the same, and says itself what is wrong.
            if not self.there(api, self.path(where)):
                raise
        found = present(self.read(api, made))
        try:
            self.check_made(where, f"NodePool {plan['name']}")
        except (GoogleApiError, ProviderError) as error:
            raise PartialError(found, error) from error
        return found

    def _body(self, where: Scope) -> dict[str, Any]:
        plan = where.state
        body = {"networkConfig": {}, **self.shape.expand(plan, where)}
        if "config" in body:
            body["config"] = with_variant(body["config"])
        if "autoscaling" in body:
            body["autoscaling"]["enabled"] = True
        sizes = (plan[it] for it in ("initial_node_count", "node_count") if filled(plan, it))
        return body | ({"initialNodeCount": size} if (size := next(sizes, 0)) else {})

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        """The pool, from the list of all of its cluster, which many reads share."""
        name = where.state.get("operation")
        if filled(where.state, "operation"):
            self.wait(where, {"name": name}, "create", "resuming GKE node pool")
        lists = gke.lists(where.api)
        try:
            found = lists.pool(path or self.path(where))
            sizes = lists.sizes((found or {}).get("instanceGroupUrls") or [])
        except GoogleApiError as error:
            if error.code == NOT_FOUND:  # the cluster
                return None
            what = f"Error when reading or editing {self.title(where)}"
            raise ProviderError(f"{what}: {error}") from error
        return None if found is None else {**found, "sizes": sizes}

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        return {
            **super().state(where, {}),
            **read_pool(self.shape, answer, where, where.state, answer["sizes"]),
            "location": where.location,
            "operation": "",
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request."""
        where = self.scope(api, plan, prior)
        path, limit = self.path(where), self.limit(where, "update")
        self.await_rest(api, path, limit)
        for request in self._changes(where):
            answer = self.send_until(api, request, limit, is_busy)
            self.wait(where, answer, "update", "updating GKE node pool")
        # The provider looks at the cluster too before it takes the pool for changed.
        self.await_rest(api, self.cluster(where), limit)
        self.await_rest(api, path, limit)
        gke.lists(api).forget(path, prior.get("instance_group_urls") or [])
        return present(self.read(api, plan))

    def _changes(self, where: Scope) -> Iterator[Request]:
        """The requests, in the order of provider 7.45.0."""
        plan, shape, name = where.state, self.shape, where.state["name"]
        cluster, path = self.cluster(where), self.path(where)
        if where.changes("autoscaling"):
            limits = shape.value("autoscaling", plan.get("autoscaling"), where) or {}
            limits = {key: it for key, it in limits.items() if it or key in _MINIMA}
            limits["enabled"] = bool(limits)
            update = {"desiredNodePoolId": name, "desiredNodePoolAutoscaling": limits}
            yield "PUT", cluster, {"update": update}
        for body in self._of_nodes(where):
            yield "PUT", path, body
        if where.changes("node_count"):
            yield "POST", f"{path}:setSize", {"nodeCount": plan["node_count"]}
        if where.changes("management"):
            # It says what is not wanted, too.
            off = {camel(it): False for it in block(plan.get("management"))}
            management = shape.value("management", plan.get("management"), where) or {}
            yield "POST", f"{path}:setManagement", {"management": {**off, **management}}
        for attribute, (field, named) in _OWN.items():
            if where.changes(attribute):
                body = {field: shape.value(attribute, plan.get(attribute), where)}
                yield "PUT", path, {**({"nodePoolId": name} if named else {}), **body}

    def _of_nodes(self, where: Scope) -> Iterator[dict[str, Any]]:
        """What changes the nodes: some things together, each other one alone."""
        before, after = (block((it or {}).get("node_config")) for it in (where.prior, where.state))
        nodes, name = self.shape.inside("node_config"), where.state["name"]
        inner = dataclasses.replace(where, state=after, prior=before)
        if inner.changes(_LOGGING):
            yield {"name": name, **nodes.expand(after, where, (_LOGGING,))}
        if inner.changes(*_TOGETHER):
            yield {"name": name, **_machine(nodes.expand(after, where, _TOGETHER), inner)}
        for each in nodes.mutable:
            if each not in (*_TOGETHER, _LOGGING) and inner.changes(each):
                key, value = nodes.key(each), nodes.value(each, after.get(each), where)
                if key in _WRAPPED:
                    # No empty labels are sent.
                    sent = bool(value) or _WRAPPED[key] != "labels"
                    yield {"name": name} | ({key: {_WRAPPED[key]: value}} if sent else {})
                else:
                    yield {"nodePoolId": name, key: value}

    def remove(self, where: Scope) -> None:
        if not self.rests(where):
            return
        path, limit = self.path(where), self.limit(where, "delete")
        try:
            answer = self.send_until(where.api, ("DELETE", path, None), limit, is_busy)
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting NodePool: {error}") from error
        self.wait(where, answer, "delete")
        gke.lists(where.api).forget(path, where.state.get("instance_group_urls") or [])

    def import_state(self, api: Api, import_id: str) -> State:
        """What an import id says of the pool; the cluster is known by its bare name then."""
        state = super().import_state(api, import_id)
        where = self.scope(api, state)
        for path in (self.cluster(where), self.path(where)):
            self.await_rest(api, path, self.limit(where, "create"))
        return state


def _machine(body: dict[str, Any], nodes: Scope) -> dict[str, Any]:
    """Machine and disk; the disk's type and size have an older name and a newer one each."""
    before, after = (block((it or {}).get("boot_disk")) for it in (nodes.prior, nodes.state))
    newer_ones = dataclasses.replace(nodes, state=after, prior=before)
    disk = body.get("bootDisk")
    for older, newer, wire, wire_of_disk in _DISK:
        if disk and nodes.changes(older):
            disk[wire_of_disk] = str(body[wire])
        elif disk and newer_ones.changes(newer):
            body[wire] = disk[wire_of_disk]
    if "diskSizeGb" in body:
        # A number in the pool, but a string in this request.
        body["diskSizeGb"] = str(body["diskSizeGb"])
    return body


def _name(plan: State) -> str:
    """The pool's name: its own, or one that begins as wanted."""
    if filled(plan, "name"):
        return str(plan["name"])
    prefix = plan["name_prefix"] if filled(plan, "name_prefix") else "tf-"
    return f"{prefix}{uuid.uuid4().hex[:26]}"


RESOURCE = _NodePool(
    service="container",
    by_client=True,
    collection="projects/{project}/locations/{location}/clusters/{cluster}/nodePools",
    shape=Shape("google_container_node_pool", RULES, hollow=True),
    least=3,
)
