"""Organization policies: which are in force, and how each service refuses what they forbid.

A project has those that a scenario names. Each service asks here, and speaks in its own words.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.cloud import facts, projects, services
from rehearsal.cloud.projects import Project
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_FACTS: Final = facts.read("constraints")
_IN_FORCE: Final = {it["constraint"]: name for name, it in _FACTS["scenarios"].items()}
_LISTS: Final = frozenset(_FACTS["list_constraints"])
_API: Final = "orgpolicy.googleapis.com"

EXTERNAL_IP: Final = "compute.vmExternalIpAccess"
SHIELDED_VM: Final = "compute.requireShieldedVm"
TRUSTED_IMAGES: Final = "compute.trustedImageProjects"
GUEST_ATTRIBUTES: Final = "compute.disableGuestAttributesAccess"
ACCOUNT_CREATION: Final = "iam.disableServiceAccountCreation"
KEY_CREATION: Final = "iam.disableServiceAccountKeyCreation"
_LOCATIONS: Final = "gcp.resourceLocations"


def in_force(scenarios: frozenset[str], constraint: str) -> bool:
    """Whether a policy of that constraint is in force for the project."""
    return _IN_FORCE.get(constraint) in scenarios


def of_vm(
    scenarios: frozenset[str], project: Project, name: str, wanted: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Why the policies forbid a VM, as Compute Engine's error of an operation; None if not."""
    found = next(_objections(scenarios, project, name, wanted), None)
    return None if found is None else {"code": "CONDITION_NOT_MET", "message": found}


def _objections(
    scenarios: frozenset[str], project: Project, name: str, wanted: Mapping[str, Any]
) -> Iterator[str]:
    interfaces = wanted.get("networkInterfaces", [])
    if in_force(scenarios, EXTERNAL_IP) and any(it.get("accessConfigs") for it in interfaces):
        yield (
            f"Constraint constraints/{EXTERNAL_IP} violated for project {project.number}. Add"
            f" instance {name} to the constraint to use external IP with it."
        )
    shielded = wanted.get("shieldedInstanceConfig") or {}
    if in_force(scenarios, SHIELDED_VM) and not shielded.get("enableSecureBoot"):
        yield (
            f"Constraint constraints/{SHIELDED_VM} violated for project projects/{project.id}."
            " Secure Boot is not enabled in the 'shielded_instance_config' field."
        )
    if in_force(scenarios, TRUSTED_IMAGES):
        allowed = _FACTS["scenarios"][_IN_FORCE[TRUSTED_IMAGES]]["rules"][0]["values"]
        for owner in _image_projects(wanted):
            if f"projects/{owner}" not in allowed["allowedValues"]:
                yield (
                    f"Constraint constraints/{TRUSTED_IMAGES} violated for project {project.id}."
                    f" Use of images from project {owner} is prohibited."
                )


def _image_projects(wanted: Mapping[str, Any]) -> Iterator[str]:
    """The projects of the images that a VM's disks are made of."""
    for disk in wanted.get("disks", []):
        image = (disk.get("initializeParams") or {}).get("sourceImage", "")
        if "projects/" in image:
            yield image.partition("projects/")[2].partition("/")[0]


def check_place(scenarios: frozenset[str], place: str, name: str) -> None:
    """Refuse a regional or zonal resource of Compute Engine or Kubernetes Engine."""
    if in_force(scenarios, _LOCATIONS) and not _is_allowed(place):
        kind = "REGION" if place[-1].isdecimal() else "ZONE"
        raise GoogleError(
            412,
            f"Location {kind}:{place} violates constraint constraints/{_LOCATIONS} on the"
            f" resource {name}.",
        )


def check_bucket_place(scenarios: frozenset[str], location: str) -> None:
    """Refuse a bucket, in the words of Cloud Storage."""
    if in_force(scenarios, _LOCATIONS) and not _is_allowed(location.lower()):
        raise GoogleError(
            412, f"'{location.lower()}' violates constraint 'constraints/{_LOCATIONS}'"
        )


def _is_allowed(place: str) -> bool:
    """Whether a place is in the group that the scenario allows: the European Union."""
    inside = place.startswith("europe-") or place in {"eu", "eur4", "eur5", "eur7", "eur8"}
    return inside and not place.startswith(tuple(_FACTS["outside_the_eu"]))


def precondition(message: str, constraint: str, subject: str) -> GoogleError:
    """The refusal of IAM, which names the constraint in its details alone."""
    violation = {"type": f"constraints/{constraint}", "subject": subject, "description": message}
    return GoogleError(
        400,
        message,
        reason="failedPrecondition",
        status="FAILED_PRECONDITION",
        details=[
            {
                "@type": "type.googleapis.com/google.rpc.PreconditionFailure",
                "violations": [violation],
            }
        ],
    )


def _get_effective(request: Request, store: Store, project: str, constraint: str) -> Reply:
    owner = projects.permitted(project, store)
    services.require(request, store, owner, _API, "Organization Policy API")
    rules: list[dict[str, Any]]
    if in_force(request.scenarios, constraint):
        rules = _FACTS["scenarios"][_IN_FORCE[constraint]]["rules"]
    else:
        rules = [{"allowAll": True} if constraint in _LISTS else {"enforce": False}]
    name = f"projects/{owner.number}/policies/{constraint}"
    return Reply(body={"name": name, "spec": {"rules": rules}})


service = Routes(
    {"GET projects/{project}/policies/{constraint}:getEffectivePolicy": _get_effective},
    api="orgpolicy.v2",
)
