"""What Google advises about capacity: where Spot VMs and those of flex start are likely now.

Sources: compute v1, discovery of 2026-11-06 (`CapacityAdviceRequest`); Compute Engine, "View the
availability of Spot VMs" (undated, read 2026-11-28): a preview, without TPUs; what is likely from
0.7 on and unlikely below 0.4; an hour, ten minutes or one as the time that most Spot VMs run.
Which refusals Google has, and their words, is believed.
"""

from collections.abc import Callable, Mapping

from rehearsal.cloud.compute import links, stock
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.facts import machines, offers, places

_MODELS = {"SPOT", "FLEX_START"}
_SHAPES = {"ANY", "ANY_SINGLE_ZONE", "BALANCED"}
_SCORES = {True: (0.9, "3600s"), False: (0.1, "60s")}
"""Whether there is room for all -> the likelihood, and how long most Spot VMs run."""


def _capacity(call: Call) -> Resource:
    model = _of(call.body, "instanceProperties", "scheduling").get("provisioningModel")
    size, distribution = call.body.get("size"), _of(call.body, "distributionPolicy")
    selections = _of(call.body, "instanceFlexibilityPolicy", "instanceSelections")
    if model not in _MODELS:
        raise _invalid("instanceProperties.scheduling.provisioningModel", model, "No advice.")
    if not isinstance(size, int) or size < 1:
        raise _invalid("size", size, "At least one instance is asked for.")
    if distribution.get("targetShape") not in _SHAPES:
        raise _invalid("distributionPolicy.targetShape", distribution.get("targetShape"), "Unset.")
    if not selections:
        raise _invalid("instanceFlexibilityPolicy.instanceSelections", selections, "Unset.")
    inside = places.zones_of(call.parameters["region"])
    zones = [links.last(it["zone"]) for it in distribution.get("zones") or ()] or inside
    for zone in zones:
        if zone not in inside:
            raise _invalid("distributionPolicy.zones", zone, "It is not in the region.")
    wanted = [name for one in selections.values() for name in one.get("machineTypes") or ()]
    for name in wanted:
        if machines.find(name) is None:
            raise _invalid("instanceSelections.machineTypes", name, "No such machine type.")
    found = [_scored(call, zone, name, str(model), size) for zone in zones for name in wanted]
    found.sort(key=lambda it: -it["scores"]["obtainability"])
    return {"recommendations": found[:1]}


def _scored(call: Call, zone: str, name: str, model: str, size: int) -> Resource:
    there = offers.has_machine(zone, name, call.request.scenarios)
    left = stock.for_sale(call, zone, model) if there else 0
    likely, uptime = _SCORES[left is None or left >= size]
    scores: Resource = {"obtainability": likely}
    if model == "SPOT":
        scores["estimatedUptime"] = uptime
    shard = {
        "zone": zone,
        "machineType": name,
        "instanceCount": size,
        "provisioningModel": model,
    }
    return {"scores": scores, "shards": [shard]}


def _of(body: Resource, *names: str) -> Resource:
    for name in names:
        body = body.get(name) or {}
    return body


def _invalid(field: str, value: object, why: str) -> Exception:
    return links.invalid(f"resource.{field}", value, why)


METHODS: Mapping[str, Callable[[Call], Resource]] = {"advice.capacity": _capacity}
