"""What the nodes of a pool are made of: a template and a managed instance group in each zone.

They are made by requests to the simulated Compute Engine, as Google's own service makes them, so
what that refuses (a machine that the zone has not, a network that is not there) is refused here.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final

from rehearsal.cloud import compute, projects
from rehearsal.cloud.compute import reservation_use, reservations
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.container.records import Record
from rehearsal.cloud.facts import machines
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_GROUPS: Final = "compute/instanceGroupManagers"
_TEMPLATES: Final = "compute/instanceTemplates"
_NETWORKS: Final = "compute/networks"
_POLICIES: Final = "compute/resourcePolicies"
_LONGEST_RUN: Final = "604800"
_RESOURCE_EXHAUSTED: Final = 8


@dataclass(frozen=True)
class Made:
    """What was made for a pool."""

    urls: list[str]  # the groups' links
    templates: list[str]
    # what keeps nodes from coming, as a `google.rpc.Status`; None when nothing does
    error: Record | None


def make(request: Request, store: Store, cluster: Record, pool: Record) -> Made:
    """Make the groups of a pool, of its initial size each."""
    path, properties = _template(request, store, cluster, pool)
    asked, count = _in_stock(request, properties), pool["initialNodeCount"]
    made = [
        _group(asked, store, cluster["name"], pool, zone, path, count) for zone in pool["locations"]
    ]
    error = next((it for _, it in made if it is not None), None)
    return Made([url for url, _ in made], [path], error)


def renew(request: Request, store: Store, cluster: Record, pool: Record) -> list[str]:
    """Have new nodes of a pool made as it is now; its templates, the newest first."""
    path, _ = _template(request, store, cluster, pool)
    for url in pool["instanceGroupUrls"]:
        body = {"versions": [{"instanceTemplate": path}]}
        _compute(request, store, "PATCH", url.removeprefix(_COMPUTE), body)
    return [path, *pool["_templates"]]


def _template(
    request: Request, store: Store, cluster: Record, pool: Record
) -> tuple[str, dict[str, Any]]:
    """Make a template for nodes of a pool; its path, and what they are made of."""
    project = "/".join(pool["selfLink"].partition("projects/")[2].split("/")[:1])
    before = len(pool.get("_templates", ()))
    template = _short(cluster["name"], pool, str(before) if before else "")
    properties = _properties(store, f"projects/{project}", cluster, pool)
    reservation = _reservation_of(request, store, project, pool)
    if reservation is not None:
        properties["scheduling"] = _scheduling_of_reserved(reservation, properties["scheduling"])
    body = {"name": template, "properties": properties}
    path = f"projects/{project}/global/instanceTemplates"
    _compute(request, store, "POST", path, body)
    return f"{path}/{template}", properties


def move(request: Request, store: Store, cluster: Record, pool: Record) -> Made:
    """Bring a pool's groups to its zones: new ones are as large as those that were there."""
    urls, template = pool["instanceGroupUrls"], pool["_templates"][0]
    properties = (store.get(_TEMPLATES, template) or {}).get("properties", {})
    count = max(size(store, url) for url in urls)
    before = {_zone(url): url for url in urls}
    kept = [url for zone, url in before.items() if zone in pool["locations"]]
    asked = _in_stock(request, properties)
    made = [
        _group(asked, store, cluster["name"], pool, zone, template, count)
        for zone in pool["locations"]
        if zone not in before
    ]
    for url in set(urls) - set(kept):
        _compute(request, store, "DELETE", url.removeprefix(_COMPUTE), None)
    error = next((it for _, it in made if it is not None), None)
    return Made([*kept, *(url for url, _ in made)], pool["_templates"], error)


def _zone(url: str) -> str:
    return url.partition("/zones/")[2].partition("/")[0]


def _group(  # noqa: PLR0913, PLR0917 - what a group is made of
    request: Request,
    store: Store,
    cluster: str,
    pool: Record,
    zone: str,
    template: str,
    count: int,
) -> tuple[str, Record | None]:
    """Make a group in a zone; its link, and what keeps its nodes from coming."""
    name = f"{_short(cluster, pool, zone)}-grp"
    group = {
        "name": name,
        "baseInstanceName": name.removesuffix("-grp"),
        "targetSize": count,
        "versions": [{"instanceTemplate": template}],
        **_workload(store, f"projects/{template.split('/')[1]}", zone, pool),
    }
    project = template.split("/")[1]
    at = f"projects/{project}/zones/{zone}/instanceGroupManagers"
    _compute(request, store, "POST", at, group)
    return f"{_COMPUTE}{at}/{name}", _refusal(store, f"{at}/{name}")


def _workload(store: Store, project: str, zone: str, pool: Record) -> Record:
    """The workload policy that a pool names for its placement, as its group has it."""
    name = (pool.get("placementPolicy") or {}).get("policyName")
    link = f"{project}/regions/{zone.rpartition('-')[0]}/resourcePolicies/{name}"
    if not name or "workloadPolicy" not in (store.get(_POLICIES, link) or {}):
        return {}
    return {"resourcePolicies": {"workloadPolicy": link}}


def size(store: Store, url: str) -> int:
    """How many nodes a group is to have."""
    group = store.get(_GROUPS, url.removeprefix(_COMPUTE))
    return 0 if group is None else int(group["targetSize"])


def resize(request: Request, store: Store, url: str, count: int) -> Record | None:
    """Give a group another size; the `google.rpc.Status` of what keeps nodes away, or None."""
    name = url.removeprefix(_COMPUTE)
    template = (store.get(_GROUPS, name) or {}).get("instanceTemplate", "").removeprefix(_COMPUTE)
    properties = (store.get(_TEMPLATES, template) or {}).get("properties", {})
    asked = _in_stock(request, properties)
    _compute(asked, store, "POST", f"{name}/resize", None, size=str(count))
    return _refusal(store, name)


def remove(request: Request, store: Store, pool: Record) -> None:
    """Delete the groups and templates of a pool."""
    for url in pool["instanceGroupUrls"]:
        _compute(request, store, "DELETE", url.removeprefix(_COMPUTE), None)
        group = store.get(_GROUPS, url.removeprefix(_COMPUTE))
        if group is not None:
            # The template goes in the same breath; nobody else can have taken hold of it.
            store.put(_GROUPS, url.removeprefix(_COMPUTE), {**group, "versions": []})
    for template in pool["_templates"]:
        _compute(request, store, "DELETE", template, None)


def _short(cluster: str, pool: Record, zone: str) -> str:
    """A name as Google makes them, from beginnings of the cluster's and the pool's."""
    digest = hashlib.sha256(f"{pool['selfLink']} {zone}".encode()).hexdigest()[:8]
    return f"gke-{cluster[:18]}-{pool['name'][:18]}-{digest}"


def _compute(
    request: Request, store: Store, method: str, path: str, body: Record | None, **query: str
) -> None:
    try:
        compute.service(request.asking(method, path, body, **query), store)
    except GoogleError as error:
        raise GoogleError(400, f"Google Compute Engine: {error.message}", status=None) from error


def _in_stock(request: Request, properties: Record) -> Request:
    """The request, without a shortage for VMs that have no GPUs: those, no zone runs out of."""
    machine = machines.find(properties.get("machineType", ""))
    if properties.get("guestAccelerators") or (machine is not None and machine.gpu):
        return request
    return replace(request, scenarios=request.scenarios - {"stockout"})


def _refusal(store: Store, name: str) -> Record | None:
    """Why nodes of a group do not come, in the words of Kubernetes Engine."""
    group = store.get(_GROUPS, name) or {}
    if not group.get("_waiting"):
        return None
    found = group["_errors"][-1]
    said, node = found["error"], found["instanceActionDetails"]["instance"].rpartition("/")[2]
    waiting = len(group["_waiting"])
    running = int(group["targetSize"]) - waiting
    missing = (
        f"Not all instances running in IGM after 36.1s. Expected {group['targetSize']}, running"
        f" {running}, transitioning {waiting}. Current errors: "
    )
    if said["code"] == "QUOTA_EXCEEDED":
        words = (
            f"Insufficient quota to satisfy the request: {missing}[GCE_QUOTA_EXCEEDED]: Instance"
            f" '{node}' creation failed: {said['message']}"
        )
    elif "RESOURCE_POOL_EXHAUSTED" not in said["code"]:
        words = f"{missing}[{said['code']}]: Instance '{node}' creation failed: {said['message']}"
    else:
        words = (
            "Try a different location, or try again later: Google Compute Engine does not have"
            f" enough resources available to fulfill request: {name.split('/')[3]}. Current errors:"
            f" [GCE_STOCKOUT]: Instance '{node}' creation failed: {said['message']}"
        )
    return {"code": _RESOURCE_EXHAUSTED, "message": words}


def _key(config: Record) -> Record:
    key = config.get("bootDiskKmsKey")
    return {"diskEncryptionKey": {"kmsKeyName": key}} if key else {}


def _properties(store: Store, project: str, cluster: Record, pool: Record) -> Record:
    config = pool["config"]
    arm = "arm64-" if machines.is_arm(config["machineType"]) else ""
    disk = {
        "sourceImage": f"projects/cos-cloud/global/images/family/cos-{arm}stable",
        "diskSizeGb": str(config["diskSizeGb"]),
        "diskType": config["diskType"],
    }
    properties: dict[str, Any] = {
        "machineType": config["machineType"],
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk, **_key(config)}],
        "networkInterfaces": _interfaces(store, project, cluster, pool),
        "scheduling": _scheduling(config),
        "labels": {**config["resourceLabels"], "goog-k8s-cluster-name": cluster["name"]},
    }
    gpus = [it for it in config.get("accelerators") or [] if not it.get("gpuPartitionSize")]
    if gpus and config["machineType"].startswith("n1-"):
        properties["guestAccelerators"] = [
            {
                "acceleratorType": it["acceleratorType"],
                "acceleratorCount": int(it["acceleratorCount"]),
            }
            for it in gpus
        ]
    if config.get("shieldedInstanceConfig"):
        properties["shieldedInstanceConfig"] = config["shieldedInstanceConfig"]
    affinity = config.get("reservationAffinity")
    if affinity:
        properties["reservationAffinity"] = affinity
    return properties


def _scheduling(config: Record) -> Record:
    if config.get("flexStart") or config.get("maxRunDuration"):
        run = str(config.get("maxRunDuration") or f"{_LONGEST_RUN}s")
        return {
            "provisioningModel": "FLEX_START" if config.get("flexStart") else "STANDARD",
            "onHostMaintenance": "TERMINATE",
            "automaticRestart": False,
            "instanceTerminationAction": "DELETE",
            "maxRunDuration": {"seconds": run.removesuffix("s")},
        }
    if config.get("spot") or config.get("preemptible"):
        return {
            "provisioningModel": "SPOT",
            "preemptible": True,
            "onHostMaintenance": "TERMINATE",
            "automaticRestart": False,
        }
    return {"onHostMaintenance": "TERMINATE"} if config.get("accelerators") else {}


def _interfaces(store: Store, project: str, cluster: Record, pool: Record) -> list[Record]:
    where = cluster["networkConfig"]
    region = where["subnetwork"].split("/")[3]
    result = [{"network": where["network"], "subnetwork": where["subnetwork"]}]
    for more in pool["networkConfig"].get("additionalNodeNetworkConfigs") or []:
        network = f"{project}/global/networks/{more['network'].rpartition('/')[2]}"
        subnetwork = more["subnetwork"].rpartition("/")[2]
        interface = {
            "network": network,
            "subnetwork": f"{project}/regions/{region}/subnetworks/{subnetwork}",
            "nicType": "GVNIC",
        }
        if (store.get(_NETWORKS, network) or {}).get("networkProfile"):
            interface["nicType"] = "MRDMA"
        result.append(interface)
    return result


# ------------------------------------------------------------------ reservations

_SPECIFIC: Final = "SPECIFIC_RESERVATION"
_TOO_MANY: Final = 429


def _reservation_of(request: Request, store: Store, project: str, pool: Record) -> Resource | None:
    """The reservation that a pool's nodes are to come from, which fits them; None for none.

    That one which is too small is answered with 429 is known from a report (GoogleCloudPlatform/
    gsutil 1000). The conditions are those that Cluster Toolkit v1.95.0 checks beforehand.
    """
    affinity = pool["config"].get("reservationAffinity") or {}
    if affinity.get("consumeReservationType") != _SPECIFIC:
        return None
    found = None
    for zone in pool["locations"]:
        call = Call(
            request=request,
            store=store,
            method="",
            project=projects.require(project, store).id,
            parameters={"zone": zone},
            body={},
        )
        found = _reserved_in_zone(call, pool)
    return found


def _scheduling_of_reserved(reservation: Resource, usual: Resource) -> Resource:
    """How nodes from a reservation are scheduled: where they must be, they are bound to it."""
    if not reservations.is_bound(reservation):
        return usual
    bound = {"provisioningModel": reservation_use.BOUND, "instanceTerminationAction": "DELETE"}
    return {**usual, **bound, "onHostMaintenance": "TERMINATE"}


def _reserved_in_zone(call: Call, pool: Record) -> Resource:
    config, zone = pool["config"], call.parameters["zone"]
    (name,) = config["reservationAffinity"].get("values") or [""]
    reservation = reservation_use.of(call, name)
    template = {"properties": _as_vms(reservation, pool)}
    said = reservation_use.problem(call, template)
    if reservation is None or said is not None:
        raise GoogleError(400, said or "", status=None)
    count = pool["initialNodeCount"]
    short = count - reservation_use.room(call, template, count)
    if short > 0:
        raise GoogleError(
            _TOO_MANY,
            "Reservation does not have enough resources for the request: specific reservation"
            f' "{name}" is insufficient for node pool "{pool["name"]}" at zone "{zone}": required'
            f" {count} and short of {short} VM count of machine type {config['machineType']}",
            status="RESOURCE_EXHAUSTED",
        )
    return reservation


def _as_vms(reservation: Resource | None, pool: Record) -> Resource:
    """The nodes of a pool as VMs, as far as a reservation is concerned."""
    config = pool["config"]
    usual = {"provisioningModel": "SPOT" if config.get("spot") else "STANDARD"}
    kept = ("machineType", "minCpuPlatform", "reservationAffinity")
    wanted = {
        **{key: config[key] for key in kept if config.get(key)},
        "guestAccelerators": [
            {**it, "acceleratorCount": int(it["acceleratorCount"])}
            for it in config.get("accelerators") or []
        ],
        "scheduling": _scheduling_of_reserved(reservation, usual) if reservation else usual,
    }
    placement = pool.get("placementPolicy") or {}
    if placement.get("type") == "COMPACT":
        wanted["resourcePolicies"] = [placement.get("policyName", "")]
    return wanted
