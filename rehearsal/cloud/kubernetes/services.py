"""Services of the type LoadBalancer: what GKE makes for them in Compute Engine, and takes away.

External ones have a target pool, a health check of the nodes that all of them share, a forwarding
rule and two firewall rules; internal ones here have a forwarding rule and a firewall rule. Names
and descriptions are those of the cloud provider of Kubernetes for Google Cloud.
"""

import hashlib
import json
from typing import Final

from rehearsal.cloud.facts import places
from rehearsal.cloud.kubernetes import google
from rehearsal.cloud.kubernetes.objects import Object, World

_FINALIZER: Final = "service.kubernetes.io/load-balancer-cleanup"
_TYPE: Final = "networking.gke.io/load-balancer-type"
_HEALTH_PORT: Final = 10256


def look(world: World) -> None:
    """Give Services their load balancers, and take them away from those that are deleted."""
    kind = world.own("v1", "services")
    found = world.each(kind)
    for service in found:
        if _FINALIZER not in (service["metadata"].get("finalizers") or []):
            if not _wants(service):
                continue
            _make(world, service)
            finalizers = [*(service["metadata"].get("finalizers") or []), _FINALIZER]
            metadata = {**service["metadata"], "finalizers": finalizers}
            address = {"ingress": [{"ip": _address(service)}]}
            world.put(kind, {**service, "metadata": metadata, "status": {"loadBalancer": address}})
        elif not _wants(service):
            others = [it for it in found if it is not service and _wants(it)]
            _take(world, service, is_last=not others)
            kept = [it for it in service["metadata"]["finalizers"] if it != _FINALIZER]
            after = {**service, "metadata": {**service["metadata"], "finalizers": kept}}
            world.settle(kind, after)


def _wants(service: Object) -> bool:
    is_balanced = (service.get("spec") or {}).get("type") == "LoadBalancer"
    return is_balanced and "deletionTimestamp" not in service["metadata"]


def _balancer(service: Object) -> str:
    return f"a{service['metadata']['uid'].replace('-', '')}"[:32]


def _address(service: Object) -> str:
    last = int(service["metadata"]["uid"][:2], 16)
    return f"203.0.113.{last}"


def _description(service: Object) -> str:
    metadata = service["metadata"]
    return json.dumps({"kubernetes.io/service-name": f"{metadata['namespace']}/{metadata['name']}"})


def _project(world: World) -> str:
    return "/".join(world.cluster.name.split("/")[:2])


def _region(world: World) -> str:
    location = str(world.cluster.record["location"])
    region = location if location in places.ZONES else places.region_of(location)
    return f"{_project(world)}/regions/{region}"


def _node_check(world: World) -> str:
    """The name of the health check that all external load balancers of a cluster share."""
    digest = hashlib.sha256(f"cluster {world.cluster.key}".encode()).hexdigest()
    return f"k8s-{digest[:16]}-node"


def _rule(world: World, service: Object, name: str, ports: list[str]) -> Object:
    record = world.cluster.record
    return {
        "name": name,
        "description": _description(service),
        "network": record["networkConfig"]["network"],
        "allowed": [{"IPProtocol": "tcp", "ports": ports}],
        "sourceRanges": ["0.0.0.0/0"],
        "targetTags": [f"gke-{record['name']}-{record['id'][:8]}-node"],
    }


def _make(world: World, service: Object) -> None:
    region, balancer, check = _region(world), _balancer(service), _node_check(world)
    rules, checks = f"{_project(world)}/global/firewalls", f"{_project(world)}/global"
    ports = [str(it["port"]) for it in service["spec"].get("ports") or []] or ["80"]
    name = {"name": balancer, "description": _description(service)}
    forwarding = {**name, "IPAddress": _address(service), "IPProtocol": "TCP"}
    google.make(world, rules, _rule(world, service, f"k8s-fw-{balancer}", ports))
    if (service["metadata"].get("annotations") or {}).get(_TYPE) == "Internal":
        network = world.cluster.record["networkConfig"]
        own = {"network": network["network"], "subnetwork": network["subnetwork"]}
        inside = {**forwarding, **own, "loadBalancingScheme": "INTERNAL", "ports": ports}
        google.make(world, f"{region}/forwardingRules", inside)
        return
    google.make(
        world,
        f"{checks}/httpHealthChecks",
        {"name": check, "port": _HEALTH_PORT, "requestPath": "/healthz"},
    )
    google.make(world, rules, _rule(world, service, f"{check}-http-hc", [str(_HEALTH_PORT)]))
    pool = {**name, "healthChecks": [f"{checks}/httpHealthChecks/{check}"]}
    google.make(world, f"{region}/targetPools", pool)
    outside = {"target": f"{region}/targetPools/{balancer}", "portRange": f"{ports[0]}-{ports[-1]}"}
    google.make(
        world,
        f"{region}/forwardingRules",
        {**forwarding, **outside, "loadBalancingScheme": "EXTERNAL"},
    )


def _take(world: World, service: Object, *, is_last: bool) -> None:
    """Delete what a Service has; what is used by something that is still going goes later."""
    region, balancer, check = _region(world), _balancer(service), _node_check(world)
    everywhere = f"{_project(world)}/global"
    google.remove(world, f"{region}/forwardingRules/{balancer}")
    google.remove(world, f"{region}/targetPools/{balancer}")
    google.remove(world, f"{everywhere}/firewalls/k8s-fw-{balancer}")
    if is_last:
        google.remove(world, f"{everywhere}/httpHealthChecks/{check}")
        google.remove(world, f"{everywhere}/firewalls/{check}-http-hc")
