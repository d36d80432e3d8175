"""Claims of devices: what DRANET, GKE's driver of networks, offers on nodes, and who has it.

GKE makes its classes of devices, and runs the driver on nodes with a label ("Allocate network
resources by using GKE managed DRANET", 2026-04-10); what it offers of a machine, GKE's autoscaler
predicts (cluster-autoscaler 7d25050, machinetypes/dranet.go). An interface that a pod claims is its
own. Kubernetes' controller makes the claim of a template for each pod, and it goes with the pod.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.cloud.facts import fabrics, gke_versions, machines
from rehearsal.cloud.facts.machines import GpuNetwork
from rehearsal.cloud.kubernetes import objects, pools
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

RDMA: Final = "mrdma.google.com"
_API: Final = "resource.k8s.io/v1"
_CLASSES: Final = (RDMA, "netdev.google.com")
_SINCE: Final = "1.34.1-gke.1829001"
_DRIVER: Final = "dra.net"
_MACHINE: Final = "node.kubernetes.io/instance-type"
_HELD: Final = "_interfaces"
_NOT_MADE: Final = "ResourceClaim not created yet"
_NO_ROOM: Final = "cannot allocate all claims"


def look(world: World) -> None:
    """Offer what nodes have, and make and end the claims of pods."""
    of_claims = world.kind(_API, "resourceclaims")
    if of_claims is None:
        return
    if gke_versions.numbers(str(world.cluster.record["currentMasterVersion"])) >= (
        gke_versions.numbers(_SINCE)
    ):
        _offer(world)
    alive = _alive(world)
    uids = {it["metadata"]["uid"] for it in alive}
    for claim in world.each(of_claims):
        owners = claim["metadata"].get("ownerReferences") or []
        if owners and uids.isdisjoint(it["uid"] for it in owners):
            world.remove(of_claims, claim)
    for pod in alive:
        _claim(world, of_claims, pod)


def _alive(world: World) -> list[Object]:
    every = world.each(world.own("v1", "pods"))
    return [it for it in every if it["status"]["phase"] in {"Pending", "Running"}]


def _offer(world: World) -> None:
    classes, slices = world.own(_API, "deviceclasses"), world.own(_API, "resourceslices")
    for name in _CLASSES:
        if world.get(classes, "", name) is None:
            selectors: Object = {
                "selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]
            }
            world.put(classes, _thing("DeviceClass", {"name": name}, selectors))
    there = world.each(world.own("v1", "nodes"))
    offered = {f"{it['metadata']['name']}-{_DRIVER}": it for it in there if _devices(it)}
    for name, node in offered.items():
        if world.get(slices, "", name) is None:
            own = node["metadata"]["name"]
            devices = [{"name": f"gpu{it}rdma0"} for it in range(_devices(node))]
            pool = {"name": own, "generation": 1, "resourceSliceCount": 1}
            spec: Object = {"driver": _DRIVER, "nodeName": own, "pool": pool, "devices": devices}
            world.put(slices, _thing("ResourceSlice", {"name": name}, spec))
    for old in world.each(slices):
        if old["metadata"]["name"] not in offered:
            world.remove(slices, old)


def _thing(kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": _API, "kind": kind, "metadata": metadata, "spec": spec}


def _devices(node: Object) -> int:
    """How many interfaces with RDMA the driver has on a node."""
    labels = node["metadata"]["labels"]
    machine = machines.find(labels.get(_MACHINE, ""))
    if labels.get(pools.DRANET) != "true" or not node["_ready"] or machine is None:
        return 0
    is_rdma = machine.gpu_network is GpuNetwork.RDMA
    return len(fabrics.STACKS[GpuNetwork.RDMA].interfaces) if is_rdma else 0


def _claim(world: World, of_claims: Kind, pod: Object) -> None:
    namespace = pod["metadata"]["namespace"]
    for it in pod["spec"].get("resourceClaims") or []:
        wanted = it.get("resourceClaimTemplateName", "")
        template = world.get(world.own(_API, "resourceclaimtemplates"), namespace, wanted)
        metadata: Object = {"name": _name(pod, it["name"]), "namespace": namespace}
        if template is None or world.get(of_claims, namespace, metadata["name"]) is not None:
            continue
        metadata["ownerReferences"] = [objects.owner(pod)]
        spec = copy.deepcopy(template["spec"]["spec"])
        world.put(of_claims, _thing("ResourceClaim", metadata, spec))


def _name(pod: Object, claim: str) -> str:
    return f"{pod['metadata']['name']}-{claim}"


def obstacle(world: World, pod: Object, node: Object) -> str:
    """What keeps a pod from what it claims on a node; "" for nothing."""
    if not pod["spec"].get("resourceClaims"):
        return ""
    wanted = _asked(world, pod)
    if wanted is None:
        return _NOT_MADE
    classes = world.own(_API, "deviceclasses")
    for name in wanted:
        if world.get(classes, "", name) is None:
            return f"device class {name} does not exist"
    own = node["metadata"]["name"]
    others = [it for it in _alive(world) if it["spec"].get("nodeName") == own]
    taken = sum(map(held, others))
    has_all = sum(wanted.values()) <= _devices(node) - taken and wanted.keys() <= {RDMA}
    return "" if has_all else _NO_ROOM


def allocate(world: World, pod: Object) -> None:
    """Let a pod have what it claims, now that it has a node."""
    named = {it["name"] for it in _used(pod["spec"])}
    claims = {it["name"] for it in pod["spec"].get("resourceClaims") or []}
    pod[_HELD] = (_asked(world, pod) or {}).get(RDMA, 0) if named & claims else 0


def held(pod: Object) -> int:
    """How many interfaces with RDMA a pod has, or had on its node."""
    return int(pod.get(_HELD, 0))


def _used(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for container in spec.get("containers") or []:
        yield from (container.get("resources") or {}).get("claims") or []


def _asked(world: World, pod: Object) -> dict[str, int] | None:
    """How many devices of each class a pod claims; None where a claim of it is not there."""
    of_claims = world.kind(_API, "resourceclaims")
    total: dict[str, int] = {}
    for it in pod["spec"].get("resourceClaims") or []:
        name = _name(pod, it["name"])
        claim = world.get(of_claims, pod["metadata"]["namespace"], name) if of_claims else None
        if claim is None:
            return None
        for name, count in classes_of(claim["spec"]).items():
            total[name] = total.get(name, 0) + count
    return total


def classes_of(spec: Mapping[str, Any]) -> dict[str, int]:
    """How many devices of each class a claim asks for by their number."""
    requests = (spec.get("devices") or {}).get("requests") or []
    asked = [it.get("exactly") or {} for it in requests]
    return {it.get("deviceClassName", ""): int(it.get("count", 1)) for it in asked}
