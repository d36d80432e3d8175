"""What an update of a pool sends, in the order of provider 7.45.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_shapes import block
from rehearsal.provider.resources.shapes import camel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.provider.resource import State
    from rehearsal.provider.resources.container_node_config import NodeConfig
    from rehearsal.provider.resources.container_pool import PoolShape

Request = tuple[str, str, dict[str, Any] | None]
"""Method, path, body."""

# What of the nodes one request changes together; it says all of it, changed or not.
_TOGETHER: Final = ("disk_size_gb", "disk_type", "machine_type", "storage_pools", "boot_disk")


# Older attribute, newer one in `boot_disk`, and the same in JSON.
_DISK: Final = (
    ("disk_type", "disk_type", "diskType", "diskType"),
    ("disk_size_gb", "size_gb", "diskSizeGb", "sizeGb"),
)


@dataclass(frozen=True)
class _Single:
    """An attribute of the nodes that one request changes alone."""

    name: str  # the attribute's name
    means: str = "nodePoolId"  # the field that says once more which pool is meant
    inner: str = ""  # what the request wraps the value in, if anything
    empty: bool = True  # whether an empty value is sent, too


_LOGGING: Final = "logging_variant"
_IMAGE: Final = "image_type"
_SINGLES: Final = (
    _Single("taint", "name", "taints"),
    _Single("tags", "name", "tags"),
    _Single("resource_manager_tags", "name", "tags"),
    _Single("resource_labels", "name", "labels", empty=False),
    _Single("labels", "name", "labels", empty=False),
    _Single(_IMAGE),
    _Single("workload_metadata_config"),
    _Single("gcfs_config"),
    _Single("gvnic"),
    _Single("kubelet_config"),
    _Single("linux_node_config"),
    _Single("windows_node_config"),
    _Single("fast_socket"),
    _Single("containerd_config"),
    _Single("confidential_nodes"),
    _Single("taint_config"),
)
_FIELDS: Final = {"taint": "taints"}
"""The fields of requests that are not named as the attributes are."""

# Attribute of the pool -> the field of the one request that changes it, and whether that request
# says once more which pool is meant.
_OWN: Final[Mapping[str, tuple[str, bool]]] = {
    "version": ("nodeVersion", True),
    "node_locations": ("locations", False),
    "upgrade_settings": ("upgradeSettings", False),
    "network_config": ("nodeNetworkConfig", True),
    "node_drain_config": ("nodeDrainConfig", False),
    "maintenance_policy": ("maintenancePolicy", False),
}


def requests(shape: PoolShape, cluster: str, prior: State, plan: State) -> Iterator[Request]:
    """The requests that change a pool."""
    name = plan["name"]
    path = f"{cluster}/nodePools/{name}"
    if _changed("autoscaling", prior, plan):
        limits = shape.autoscaling(plan.get("autoscaling"), update=True)
        update = {"desiredNodePoolId": name, "desiredNodePoolAutoscaling": limits}
        yield "PUT", cluster, {"update": update}
    nodes = (prior.get("node_config"), plan.get("node_config"))
    yield from of_nodes(shape.config, cluster, name, *nodes)
    if _changed("node_count", prior, plan):
        yield "POST", f"{path}:setSize", {"nodeCount": plan["node_count"]}
    if _changed("management", prior, plan):
        management = shape.management(plan.get("management"), update=True)
        yield "POST", f"{path}:setManagement", {"management": management}
    for attribute, (field, named) in _OWN.items():
        if _changed(attribute, prior, plan):
            body = {field: shape.value(attribute, plan.get(attribute))}
            yield "PUT", path, {**({"nodePoolId": name} if named else {}), **body}


def of_nodes(
    config: NodeConfig, cluster: str, name: str, prior: Any, wanted: Any
) -> Iterator[Request]:
    """The requests that change what the nodes of a pool are made of."""
    before, after = block(prior), block(wanted)
    path = f"{cluster}/nodePools/{name}"
    if _changed(_LOGGING, before, after):
        yield "PUT", path, {"name": name, **config.part(after, (_LOGGING,))}
    if any(_changed(it, before, after) for it in _TOGETHER):
        yield "PUT", path, {"name": name, **_machine(config, before, after)}
    for single in _SINGLES:
        if not _changed(single.name, before, after):
            continue
        value = config.value(single.name, after.get(single.name))
        if single.name == _IMAGE:
            update = {"desiredNodePoolId": name, "desiredImageType": value}
            yield "PUT", cluster, {"update": update}
            continue
        field = _FIELDS.get(single.name) or camel(single.name)
        given = {single.inner: value} if single.inner else value
        yield "PUT", path, {single.means: name, **({field: given} if value or single.empty else {})}


def _machine(config: NodeConfig, before: State, after: State) -> dict[str, Any]:
    """Machine and disk; the disk's type and size have an older name and a newer one each."""
    body = config.part(after, _TOGETHER)
    old_disk, disk = block(before.get("boot_disk")), body.get("bootDisk")
    for older, newer, wire, wire_of_disk in _DISK:
        if disk and _changed(older, before, after):
            disk[wire_of_disk] = str(body[wire])
        elif disk and _changed(newer, old_disk, block(after.get("boot_disk"))):
            body[wire] = disk[wire_of_disk]
    if "diskSizeGb" in body:
        # A number in the pool, but a string in this request.
        body["diskSizeGb"] = str(body["diskSizeGb"])
    return body


def _changed(name: str, before: State, after: State) -> bool:
    value = after.get(name)
    return value is not UNKNOWN and value != before.get(name)
