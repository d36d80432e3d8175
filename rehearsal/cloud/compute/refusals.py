"""Why a VM of a group does not come: the zone has none left, or the project may have none.

Google answers neither to the request that makes the group: the group is made, goes on trying, and
tells the error of its last attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.compute import catalogue, properties, quotas, reservation_use
from rehearsal.cloud.facts import places

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Call, Resource

_STOCKOUTS = "scenarios/stockout"
_HELP = "https://cloud.google.com/compute/docs/resource-error"


def of(call: Call, template: Resource) -> Resource | None:
    """The error that keeps a VM of this template from being made in the call's zone, or None."""
    return (
        _denied(call, template)
        or reservation_use.refusal(call, template)
        or _quota(call, template)
        or _stockout(call, template)
    )


def _denied(call: Call, template: Resource) -> Resource | None:
    """What `org-policy` and `no-account` do; a group keeps trying all the same.

    Codes and sentences are those that people have met: of compute.vmExternalIpAccess, and of an
    account without iam.serviceAccounts.actAs.
    """
    wanted = template["properties"]
    scenarios = call.request.scenarios
    interfaces = wanted.get("networkInterfaces", [])
    if "org-policy" in scenarios and any(one.get("accessConfigs") for one in interfaces):
        return {
            "code": "CONDITION_NOT_MET",
            "message": "Constraint constraints/compute.vmExternalIpAccess violated for project"
            f" {call.project}. Add instance projects/{call.project}/zones/"
            f"{call.parameters['zone']}/instances/vm to the constraint to use external IP with it.",
        }
    if "no-account" in scenarios:
        account = (wanted.get("serviceAccounts") or [{}])[0].get("email", "")
        return {
            "code": "SERVICE_ACCOUNT_ACCESS_DENIED",
            "message": "The user does not have access to service account"
            f" '{account}'.  User: 'me'.  Ask a project owner to grant you the"
            " iam.serviceAccountUser role on the service account",
        }
    return None


def _quota(call: Call, template: Resource) -> Resource | None:
    """What `quota` does; usage does not count, as the only other limit is never reached."""
    if quotas.is_reserved(call, template):
        return None
    most = quotas.limit(call)
    wanted = template["properties"]
    region = places.region_of(call.parameters["zone"])
    for gpu, count in properties.accelerators(wanted):
        if count > most:
            model = wanted["scheduling"]["provisioningModel"]
            return quotas.of_gpu(gpu, region, model=model).exceeded(most)
    return None


def _stockout(call: Call, template: Resource) -> Resource | None:
    """What `stockout` does: the zone that is asked first has nothing, for good.

    What is reserved is there all the same.
    """
    if "stockout" not in call.request.scenarios or reservation_use.named(template):
        return None
    zone = call.parameters["zone"]
    empty = call.store.get(_STOCKOUTS, call.project)
    if empty is None:
        empty = {"zone": zone}
        call.store.put(_STOCKOUTS, call.project, empty)
    return exhausted(call.project, zone, template) if zone == empty["zone"] else None


def exhausted(project: str, zone: str, template: Resource) -> Resource:
    """The error that a zone has no machines of a template left."""
    machine = template["properties"]["machineType"]
    others = [
        other
        for other in places.ZONES[places.region_of(zone)]
        if other != zone and catalogue.machine_in(other, machine)
    ]
    gpus = properties.accelerators(template["properties"])
    return {
        "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "message": f"The zone 'projects/{project}/zones/{zone}' does not have enough resources"
        " available to fulfill the request.  '(resource type:compute)'.",
        "errorDetails": [
            {"help": {"links": [{"description": "Troubleshooting documentation", "url": _HELP}]}},
            {
                "errorInfo": {
                    "domain": "compute.googleapis.com",
                    "reason": "resource_availability",
                    "metadatas": {
                        "attachment": ",".join(f"{gpu}:{count}" for gpu, count in gpus),
                        "vmType": machine,
                        "zone": zone,
                        "zonesAvailable": ",".join(others[:1]),
                    },
                }
            },
        ],
    }
