"""Kueue's admission check by ProvisioningRequest: nodes first, then the job."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import objects, quantities, queues

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

REQUESTS: Final = ("autoscaling.x-k8s.io/v1", "provisioningrequests")
TEMPLATES: Final = ("v1", "podtemplates")
_PARAMETERS: Final = "provreq.kueue.x-k8s.io/"
CONSUME: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
_CLASS: Final = "autoscaling.x-k8s.io/provisioning-class-name"
_RETRIES: Final = {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
"""What Kueue takes where the configuration does not say."""


@dataclass(frozen=True)
class Verdict:
    """What the checks of a workload come to.

    Attributes:
        state: Pending, Ready, Retry or Rejected: the first of the latter two wins.
        name: The check that decides.
        pause: Seconds of cloud time before another try.
    """

    state: str
    name: str = ""
    pause: float = 0.0


def pending(world: World, workload: Object, names: list[str]) -> list[Object]:
    """The checks at the beginning of an attempt."""
    before = (workload.get("status") or {}).get("admissionChecks") or []
    tries = {it["name"]: it["retryCount"] for it in before if "retryCount" in it}
    return [
        {
            "name": name,
            "state": "Pending",
            "message": "",
            "lastTransitionTime": world.stamp,
            **({"retryCount": tries[name]} if name in tries else {}),
        }
        for name in names
    ]


def advance(world: World, workload: Object, names: list[str]) -> Verdict:
    """Bring the checks of a workload up to what their requests say."""
    states = {it["name"]: it for it in workload["status"].get("admissionChecks") or []}
    pause = 0.0
    for name in names:
        state = states.get(name)
        if state is None or state["state"] in ("Ready", "Rejected"):
            continue
        pause = max(pause, _advance(world, workload, state))
    for wanted in ("Rejected", "Retry", "Pending"):
        found = next((it for it in states.values() if it["state"] == wanted), None)
        if found is not None:
            return Verdict(wanted, found["name"], pause)
    return Verdict("Ready")


def _advance(world: World, workload: Object, state: Object) -> float:
    """Look after one check; the pause that it asks for before another try."""
    check = queues.find(world, "admissionchecks", state["name"])
    config = queues.config_of(world, check) if check else None
    if config is None:
        _set(world, state, "Pending", "the check is not active")
        return 0.0
    wanted = _wanted(workload, config["spec"])
    if not wanted:
        _set(world, state, "Ready", "the provisioning request is not needed")
        return 0.0
    attempt = int(state.get("retryCount", 0)) + 1
    request = _request(world, workload, config["spec"], f"{state['name']}-{attempt}", wanted)
    said = {it: objects.condition(request, it) for it in _SAID}
    for failure, words in (("Failed", "failure"), ("BookingExpired", "booking expired")):
        if said[failure].get("status") == "True":
            message = said[failure]["message"]
            return _retry(world, state, config["spec"], f"Retrying after {words}: {message}")
    if said["Provisioned"].get("status") == "True":
        _set(world, state, "Ready", said["Provisioned"]["message"])
        annotations = {
            CONSUME: request["metadata"]["name"],
            _CLASS: request["spec"]["provisioningClassName"],
        }
        state["podSetUpdates"] = [{"name": it["name"], "annotations": annotations} for it in wanted]
    elif said["Provisioned"]:
        _set(world, state, "Pending", said["Provisioned"]["message"])
    return 0.0


_SAID: Final = ("Failed", "BookingExpired", "Provisioned")


def _set(world: World, state: Object, value: str, message: str) -> None:
    if state["state"] != value:
        state["lastTransitionTime"] = world.stamp
    state |= {"state": value, "message": message or state["message"]}


def _retry(world: World, state: Object, config: Object, message: str) -> float:
    """Another attempt later, or none any more; the pause before it."""
    limits = {**_RETRIES, **(config.get("retryStrategy") or {})}
    count = int(state.get("retryCount", 0)) + 1
    if count > int(limits["backoffLimitCount"]):
        _set(world, state, "Rejected", message.partition(": ")[2])
        return 0.0
    _set(world, state, "Retry", message)
    state["retryCount"] = count
    pause = float(limits["backoffBaseSeconds"]) * 2.0 ** (count - 1)
    return min(pause, float(limits["backoffMaxSeconds"]))


def _wanted(workload: Object, config: Object) -> list[Object]:
    """The sets of pods for which nodes are to be asked."""
    managed = set(config.get("managedResources") or [])
    return [
        it
        for it in workload["spec"]["podSets"]
        if not managed or managed & quantities.requests(it["template"].get("spec") or {}).keys()
    ]


def _request(
    world: World, workload: Object, config: Object, suffix: str, wanted: list[Object]
) -> Object:
    """The ProvisioningRequest of an attempt, made if it is missing."""
    kind, of_templates = world.kind(*REQUESTS), world.kind(*TEMPLATES)
    name = f"{workload['metadata']['name']}-{suffix}"
    namespace = workload["metadata"]["namespace"]
    if kind is None or of_templates is None:
        return {}
    known = world.get(kind, namespace, name)
    if known is not None:
        return known
    annotations = workload["metadata"].get("annotations") or {}
    sets = []
    for it in _merged(wanted, config):
        template = f"ppt-{name}-{it['name']}"
        sets.append({"count": it["count"], "podTemplateRef": {"name": template}})
        metadata = {"name": template, "namespace": namespace}
        thing = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata}
        metadata |= {"ownerReferences": [objects.owner(workload)]}
        world.put(of_templates, {**thing, "template": _placed(world, workload, it)})
    spec = {
        "provisioningClassName": config["provisioningClassName"],
        "parameters": {
            key.removeprefix(_PARAMETERS): value
            for key, value in annotations.items()
            if key.startswith(_PARAMETERS)
        },
        "podSets": sets,
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "ownerReferences": [objects.owner(workload)],
        "labels": {"kueue.x-k8s.io/managed": "true"},
    }
    thing = {"apiVersion": REQUESTS[0], "kind": "ProvisioningRequest", "metadata": metadata}
    return world.put(kind, {**thing, "spec": spec})


def _placed(world: World, workload: Object, pods: Object) -> Object:
    """The template of a set of pods on the nodes of its flavors."""
    template: Object = copy.deepcopy(pods["template"])
    spec = template.setdefault("spec", {})
    for it in workload["status"]["admission"]["podSetAssignments"]:
        if it["name"] != pods["name"]:
            continue
        for name in dict.fromkeys(it["flavors"].values()):
            flavor = (queues.find(world, "resourceflavors", name) or {}).get("spec") or {}
            labels = flavor.get("nodeLabels") or {}
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **labels}
    return template


def _merged(wanted: list[Object], config: Object) -> list[Object]:
    """Sets of pods that need the same nodes are one, where the configuration says so."""
    if not config.get("podSetMergePolicy"):
        return wanted
    result: list[Object] = []
    for it in wanted:
        same = next((one for one in result if _needs(one) == _needs(it)), None)
        if same is None:
            result.append(dict(it))
        else:
            same["count"] += it["count"]
    return result


def _needs(pods: Object) -> tuple[object, ...]:
    spec = pods["template"].get("spec") or {}
    return quantities.requests(spec), spec.get("nodeSelector"), spec.get("tolerations")


def forget(world: World, workload: Object) -> None:
    """Delete the requests of a workload that gave its quota back."""
    kind = world.kind(*REQUESTS)
    for request in world.each(kind, workload["metadata"]["namespace"]) if kind else ():
        owners = request["metadata"].get("ownerReferences") or []
        if kind is not None and any(it["uid"] == workload["metadata"]["uid"] for it in owners):
            world.remove(kind, request)
