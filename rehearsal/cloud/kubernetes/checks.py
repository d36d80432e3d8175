"""Kueue's admission check by ProvisioningRequest: nodes first, then the job.

As Kueue 0.18.3 does it (its source of 2026-07-10): requests go with their attempt, and what they
said stays in the messages of the workload and in its events.
"""

import copy
from dataclasses import dataclass
from typing import Final

from rehearsal.cloud.kubernetes import objects, quantities, queues
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
    """What the checks of a workload come to."""

    state: str  # pending, Ready, Retry or Rejected: the first of the latter two wins
    check: str = ""  # the check that decides, as Kueue names it in messages
    pause: float = 0.0  # seconds of cloud time before another try


def pending(world: World, workload: Object, names: list[str]) -> list[Object]:
    """The checks at the beginning of an attempt: what is known of them before stays."""
    before = (workload.get("status") or {}).get("admissionChecks") or []
    known = {it["name"]: it for it in before}
    new = {"state": "Pending", "message": "", "lastTransitionTime": world.stamp}
    return [known.get(name) or {"name": name, **new} for name in names]


def reset(world: World, workload: Object) -> None:
    """Let all checks of a workload begin again, as its eviction does; a retry is counted."""
    for state in (workload.get("status") or {}).get("admissionChecks") or []:
        if state["state"] == "Pending":
            continue
        tries = int(state.get("retryCount", 0)) + 1 if state["state"] == "Retry" else None
        for key in ("podSetUpdates", "retryCount"):
            state.pop(key, None)
        if tries is not None:
            state["retryCount"] = tries
        state["message"] = f"Reset to Pending after eviction. Previously: {state['state']}"
        state |= {"state": "Pending", "lastTransitionTime": world.stamp}


def advance(world: World, workload: Object, names: list[str]) -> Verdict:
    """Bring the checks of a workload up to what their requests say."""
    states = {it["name"]: it for it in workload["status"].get("admissionChecks") or []}
    pause = 0.0
    for name in names:
        if name in states:
            before = states[name]["state"]
            pause = max(pause, _advance(world, workload, states[name]))
            _report(world, workload, states[name], before)
    for wanted in ("Rejected", "Retry", "Pending"):
        found = next((it for it in states.values() if it["state"] == wanted), None)
        if found is not None:
            return Verdict(wanted, f'"{found["name"]}" ({found["message"]})', pause)
    return Verdict("Ready")


def _report(world: World, workload: Object, state: Object, before: str) -> None:
    """Note an event of a check that changed: it outlives what the check says."""
    if state["state"] == before:
        return
    words = f"Admission check {state['name']} updated state from {before} to {state['state']}"
    words += f" with message: {state['message']}" if state["message"] else ""
    objects.note(world, workload, "Normal", "AdmissionCheckUpdated", words)


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
    name = f"{workload['metadata']['name']}-{state['name']}-{attempt}"
    request = _find(world, workload, name)
    if request is None:
        if state["state"] == "Pending":
            _make(world, workload, config["spec"], name, wanted)
        return 0.0
    return _judge(world, workload, state, request, config["spec"])


def _judge(world: World, workload: Object, state: Object, request: Object, config: Object) -> float:
    """What a check makes of its request; the pause that it asks for."""
    said = {it["type"]: it for it in (request.get("status") or {}).get("conditions") or []}
    true = {name for name, it in said.items() if it["status"] == "True"}
    if "Failed" in true:
        return _retry(world, state, config, "failure", said["Failed"]["message"])
    if "CapacityRevoked" in true:
        # Pods that replace those of the nodes that are gone would wait for ever.
        _set(world, state, "Rejected", said["CapacityRevoked"]["message"])
    elif "BookingExpired" in true:
        if not objects.holds(workload, "Admitted"):
            message = said["BookingExpired"]["message"]
            return _retry(world, state, config, "booking expired", message)
    elif "Provisioned" in true:
        if state["state"] != "Ready":
            _set(world, state, "Ready", said["Provisioned"]["message"])
            state["podSetUpdates"] = _updates(workload, request, config)
    elif "Accepted" in true and "Provisioned" in said:
        _set(world, state, "Pending", said["Provisioned"]["message"])
    return 0.0


def _updates(workload: Object, request: Object, config: Object) -> list[Object]:
    """What is to be changed of the pods; of merged sets only the first is (kueue#14408)."""
    annotations = {
        CONSUME: request["metadata"]["name"],
        _CLASS: request["spec"]["provisioningClassName"],
    }
    details = (request.get("status") or {}).get("provisioningClassDetails") or {}
    rules = (config.get("podSetUpdates") or {}).get("nodeSelector") or []
    selector = {
        it["key"]: details[it["valueFromProvisioningClassDetail"]]
        for it in rules
        if it["valueFromProvisioningClassDetail"] in details
    }
    return [
        {"name": it["name"], "annotations": annotations, "nodeSelector": selector}
        for it in _merged(_wanted(workload, config), config)
    ]


def _set(world: World, state: Object, value: str, message: str) -> None:
    if state["state"] != value:
        state["lastTransitionTime"] = world.stamp
    state |= {"state": value, "message": message or state["message"]}


def _retry(world: World, state: Object, config: Object, what: str, message: str) -> float:
    """Another attempt later, or none any more; the pause before it."""
    limits = {**_RETRIES, **(config.get("retryStrategy") or {})}
    attempt = int(state.get("retryCount", 0)) + 1
    if attempt > int(limits["backoffLimitCount"]):
        _set(world, state, "Rejected", message)
        return 0.0
    _set(world, state, "Retry", f"Retrying after {what}: {message}")
    pause = float(limits["backoffBaseSeconds"]) * 2.0 ** (attempt - 1)
    pause = min(pause, float(limits["backoffMaxSeconds"]))
    state["requeueAfterSeconds"] = int(pause)
    return pause


def _wanted(workload: Object, config: Object) -> list[Object]:
    managed = set(config.get("managedResources") or [])
    assigned = workload["status"]["admission"]["podSetAssignments"]
    counts = {it["name"]: it["count"] for it in assigned}
    return [
        {**it, "count": counts[it["name"]]}
        for it in workload["spec"]["podSets"]
        if not managed or managed & quantities.requests(it["template"].get("spec") or {}).keys()
    ]


def _find(world: World, workload: Object, name: str) -> Object | None:
    return world.get(world.own(*REQUESTS), workload["metadata"]["namespace"], name)


def _make(world: World, workload: Object, config: Object, name: str, wanted: list[Object]) -> None:
    """Make the ProvisioningRequest of an attempt; it owns the templates of its pods."""
    kind, of_templates = world.own(*REQUESTS), world.own(*TEMPLATES)
    namespace = workload["metadata"]["namespace"]
    annotations = workload["metadata"].get("annotations") or {}
    merged = _merged(wanted, config)
    templates = [f"ppt-{name}-{it['name']}" for it in merged]
    sets = [
        {"count": it["count"], "podTemplateRef": {"name": template}}
        for it, template in zip(merged, templates, strict=True)
    ]
    passed = {
        key.removeprefix(_PARAMETERS): value
        for key, value in annotations.items()
        if key.startswith(_PARAMETERS)
    }
    spec = {
        "provisioningClassName": config["provisioningClassName"],
        # What the job says goes before what the configuration says for all.
        "parameters": {**(config.get("parameters") or {}), **passed},
        "podSets": sets,
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "ownerReferences": [objects.owner(workload)],
        "labels": {"kueue.x-k8s.io/managed": "true"},
    }
    thing = {"apiVersion": REQUESTS[0], "kind": "ProvisioningRequest", "metadata": metadata}
    request = world.put(kind, {**thing, "spec": spec})
    for it, template in zip(merged, templates, strict=True):
        own = {"name": template, "namespace": namespace}
        own |= {"ownerReferences": [objects.owner(request)]}
        made = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": own}
        world.put(of_templates, {**made, "template": _placed(world, workload, it)})
    words = f'Created ProvisioningRequest: "{name}"'
    objects.note(world, workload, "Normal", "ProvisioningRequestCreated", words)


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
            more = flavor.get("tolerations") or []
            spec["tolerations"] = [*(spec.get("tolerations") or []), *more]
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
    """Delete the requests of a workload that has ended, or gave its quota back."""
    kind = world.own(*REQUESTS)
    for request in world.each(kind, workload["metadata"]["namespace"]):
        owners = request["metadata"].get("ownerReferences") or []
        if any(it["uid"] == workload["metadata"]["uid"] for it in owners):
            world.remove(kind, request)
