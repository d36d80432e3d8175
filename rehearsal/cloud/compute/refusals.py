"""Why a VM of a group does not come: the zone has none left, or the project may have none.

Google answers neither to the request that makes the group: the group is made, goes on trying, and
tells the error of its last attempt.
"""

from rehearsal.cloud import iam, keys, org_policies, policies, projects
from rehearsal.cloud.compute import images, properties, quotas, reservation_use, stock
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.facts import offers, places

_STOCKOUTS = "scenarios/stockout"
_HELP = "https://cloud.google.com/compute/docs/resource-error"


def of(call: Call, template: Resource, count: int = 1) -> Resource | None:
    """The error that keeps so many VMs of this template from the call's zone, or None."""
    return (
        _denied(call, template)
        or _image(call, template)
        or _not_given(call, template)
        or reservation_use.refusal(call, template)
        or quotas.refusal(call, template, count)
        or _stockout(call, template, count)
    )


def _denied(call: Call, template: Resource) -> Resource | None:
    """What policies and `no-account` do; a group keeps trying all the same.

    Codes and sentences are those that people have met: of policies, and of an account without
    iam.serviceAccounts.actAs.
    """
    wanted = template["properties"]
    scenarios = call.request.scenarios
    owner = projects.require(call.project, call.store)
    vm = f"projects/{call.project}/zones/{call.parameters['zone']}/instances/vm"
    forbidden: Resource | None = org_policies.of_vm(scenarios, owner, vm, wanted)
    if forbidden is not None:
        return forbidden
    gone = _account_gone(call, wanted)
    if gone is not None:
        return gone
    for disk in wanted["disks"]:
        key = (disk.get("diskEncryptionKey") or {}).get("kmsKeyName")
        zone = call.parameters["zone"]
        why = keys.refusal(call.store, key, call.project, keys.COMPUTE, zone) if key else ""
        if why:
            return {"code": "PERMISSIONS_ERROR", "message": why}
    if "no-account" in scenarios:
        account = (wanted.get("serviceAccounts") or [{}])[0].get("email", "")
        return {
            "code": "SERVICE_ACCOUNT_ACCESS_DENIED",
            "message": "The user does not have access to service account"
            f" '{account}'.  User: 'me'.  Ask a project owner to grant you the"
            " iam.serviceAccountUser role on the service account",
        }
    return None


def _image(call: Call, template: Resource) -> Resource | None:
    """What keeps VMs from an image that was withdrawn since the template was made."""
    reference, image = images.of_boot_disk(call, template["properties"])
    if not reference:
        return None
    if image is None:
        message = f"The resource '{reference}' was not found"
        return {"code": "RESOURCE_NOT_FOUND", "message": message}
    if image.refusal:
        return {"code": "INVALID_USAGE", "message": image.refusal}
    return None


def _account_gone(call: Call, wanted: Resource) -> Resource | None:
    """The error of an account that is not there; only at a VM is it looked for.

    Of the accounts of Google's own domains the project's default one alone is known here.
    """
    default = projects.require(call.project, call.store).compute_account
    for account in wanted.get("serviceAccounts") or []:
        email = account["email"]
        is_known_of = email == default or email.endswith(".iam.gserviceaccount.com")
        known = iam.find(call.store, "-", email) is not None
        known = known and not policies.is_young(call.request, call.store, email)
        if is_known_of and not known:
            return {
                "code": "RESOURCE_NOT_FOUND",
                "message": f"The resource '{email}' of type 'serviceAccount' was not found.",
            }
    return None


def _not_given(call: Call, template: Resource) -> Resource | None:
    """What Google never gives in that way; that, and its words, are those of combinations.

    A reservation gives what is not given on demand. GKE refuses its own pools alone.
    """
    wanted = template["properties"]
    model = wanted["scheduling"]["provisioningModel"]
    affinity = (wanted.get("reservationAffinity") or {}).get("consumeReservationType")
    is_reserved = affinity == "SPECIFIC_RESERVATION"  # then the reservation says
    is_of_gke = "goog-k8s-cluster-name" in (wanted.get("labels") or {})
    machine = wanted["machineType"]
    if is_reserved or is_of_gke or offers.is_given(machine, model, call.request.scenarios):
        return None
    return {
        "code": "UNSUPPORTED_OPERATION",
        "message": f"[{machine}, {model}] features are not compatible for creating instance.",
    }


def _stockout(call: Call, template: Resource, count: int) -> Resource | None:
    """What a zone has not left, beside what is reserved; under `stockout` the first one asked."""
    if stock.room(call, template, count) < count:
        return exhausted(call, call.parameters["zone"], template)
    if "stockout" not in call.request.scenarios or reservation_use.named(template):
        return None
    zone = call.parameters["zone"]
    empty = call.store.get(_STOCKOUTS, call.project)
    if empty is None:
        empty = {"zone": zone}
        call.store.put(_STOCKOUTS, call.project, empty)
    return exhausted(call, zone, template) if zone == empty["zone"] else None


def exhausted(call: Call, zone: str, template: Resource) -> Resource:
    """The error that a zone has no machines of a template left."""
    project = call.project
    machine = template["properties"]["machineType"]
    others = [
        other
        for other in places.zones_of(places.region_of(zone))
        if other != zone and offers.has_machine(other, machine, call.request.scenarios)
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
