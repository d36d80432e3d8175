"""Google's refusals: what the error codes and messages mean.

This is the only reader of them, wherever they come from: the errors of Compute Engine's VMs and
resize requests, the conditions of GKE's ProvisioningRequests, Terraform's output, and the
responses of the APIs. The callers decide what to tell people.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import accounts, constraints
from provision.codes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUOTA_PAGE: Final = "https://console.cloud.google.com/iam-admin/quotas"
"""The page of the Google Cloud console where one requests an increase of a quota."""

AGAIN: Final = "run the same action again; if it keeps failing, see https://status.cloud.google.com"
"""What fixes an outage."""

TRUST: Final = (
    "set CA_BUNDLE to a file with the certificates of whoever reads TLS between this machine and"
    " Google: a company's proxy, which those know who run the network"
)
"""What lets this program trust a proxy."""

QUOTA_ROLE: Final = "needs the role Quota Administrator, roles/servicemanagement.quotaAdmin"


class Refusal(enum.Enum):
    """Why Google refuses something.

    `STOCKOUT`: The zone has no such machines available now. `NOT_YET`: Like STOCKOUT, but the
    request stays in Google's queue. `QUOTA`: The project's quota is too small. `PERMISSION`: An
    account lacks a permission. `API_OFF`: The project has not enabled the API. `POLICY`: An
    organization policy forbids it. `MISSING`: A resource that it needs does not exist.
    `RESERVATION`: The reservation does not exist, or does not fit the request. `RESERVED_OUT`: The
    reservation has no machines left; there are some once others end. `CONFIGURATION`: The parts of
    the request do not go together. `ADDRESSES`: The subnetwork has no free IP addresses. `IN_USE`:
    Something else uses what was to be changed or deleted.
    """

    STOCKOUT = Code.STOCK_OUT
    NOT_YET = Code.WAITING
    QUOTA = Code.QUOTA_EXCEEDED
    PERMISSION = Code.PERMISSION_MISSING
    API_OFF = Code.API_OFF
    POLICY = Code.POLICY_FORBIDS
    MISSING = Code.RESOURCE_NOT_FOUND
    RESERVATION = Code.RESERVATION_UNUSABLE
    RESERVED_OUT = Code.RESERVATION_FULL
    CONFIGURATION = Code.INCOMPATIBLE_REQUEST
    ADDRESSES = Code.NO_FREE_ADDRESSES
    IN_USE = Code.IN_USE

    @property
    def code(self) -> Code:
        """The code of a problem that is this refusal."""
        return self.value


CAPACITY: Final = frozenset({Refusal.STOCKOUT, Refusal.QUOTA})
"""The refusals of machines, which another zone or more quota fixes."""

NO_MACHINES: Final = CAPACITY | {Refusal.RESERVED_OUT}
"""The refusals of machines for a lack of them, whether waiting helps or not."""

PERMANENT: Final = frozenset(
    {
        Refusal.PERMISSION,
        Refusal.API_OFF,
        Refusal.POLICY,
        Refusal.MISSING,
        Refusal.RESERVATION,
        Refusal.CONFIGURATION,
        Refusal.ADDRESSES,
    }
)
"""The refusals that no waiting fixes: somebody has to change something first."""


class Reach(enum.Enum):
    """How far a refusal reaches.

    `ZONE`: Another zone may do. `REGION`: A zone of another region may do. `EVERYWHERE`: It is the
    same in all zones.
    """

    ZONE = enum.auto()
    REGION = enum.auto()
    EVERYWHERE = enum.auto()


# Code -> how far it reaches; what is not here is the same everywhere. SkyPilot 0.14.1 blocks the
# same for the same errors (cloud_vm_ray_backend.py); a request that fails without a reason, too.
_REACH: Final[Mapping[Code, Reach]] = {
    Code.STOCK_OUT: Reach.ZONE,
    Code.WAITING: Reach.ZONE,
    Code.CAPACITY_REFUSED: Reach.ZONE,
    Code.RESERVATION_UNUSABLE: Reach.ZONE,
    Code.RESERVATION_FULL: Reach.ZONE,
    Code.QUOTA_EXCEEDED: Reach.REGION,
    Code.NO_FREE_ADDRESSES: Reach.REGION,
}
_LOCATIONS: Final = "gcp.resourceLocations"
"""The constraint that allows some places and forbids others."""

YOUNG: Final = 180.0
"""Seconds of cloud time for which what Google says of a new account may be no more than late.

It asks to wait "60 seconds or more" before one is used (IAM, "Create service accounts").
"""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota that is exceeded, taken from Google's message."""

    metric: str  # its metric, such as "NVIDIA_A100_GPUS"
    limit: float  # the project's limit
    region: str  # the quota's region; "" for a quota of all regions, or if the message has none
    everywhere: bool = False  # whether the message says that it is a quota of all regions


# Error code of Compute Engine, or reason of a ProvisioningRequest -> what it means. Sources: the
# discovery document of compute v1, and Google's documentation of ProvisioningRequest.
_CODES: Final[Mapping[str, Refusal]] = {
    "QUEUING_INFEASIBLE_NO_CAPACITY": Refusal.STOCKOUT,
    "SERVICE_ACCOUNT_ACCESS_DENIED": Refusal.PERMISSION,
    "UNSUPPORTED_OPERATION": Refusal.CONFIGURATION,
    "NotProvisioned": Refusal.NOT_YET,
    "QuotaExceeded": Refusal.QUOTA,
    "QueuingInfeasibleNoCapacity": Refusal.STOCKOUT,
    "ResourcePoolExhausted": Refusal.STOCKOUT,
}
# What such codes contain, where one has more to it than the rest.
_PARTS_OF_CODES: Final[Mapping[str, Refusal]] = {
    "QUOTA": Refusal.QUOTA,
    "RESOURCE_POOL_EXHAUSTED": Refusal.STOCKOUT,
    "IP_SPACE_EXHAUSTED": Refusal.ADDRESSES,
    "PERMISSIONS_ERROR": Refusal.PERMISSION,
}
_QUOTA: Final = re.compile(
    r"Quota '(?P<metric>[^']+)' exceeded\.\s+Limit: (?P<limit>\d+(?:\.\d+)?)"
    r"(?: in region (?P<region>[\w-]+)| (?P<everywhere>globally))?"
)
_STOCKOUT: Final = re.compile(
    r"does not have enough resources available|insufficient capacity in zone"
    r"|not enough resources available to fulfill the request|failed: GCE out of resources"
)
# GKE's event about pods for which it got no node, which does not name the quota.
_SOME_QUOTA: Final = re.compile(r"failed: GCE quota exceeded")
_ZONE: Final = re.compile(r"\b(?:zones/|in zone )(?P<zone>[\w-]+)")
# The permission in the messages of Compute Engine, of Cloud Storage, and of the newer APIs.
_PERMISSION: Final = re.compile(
    r"Required ['\"](?P<compute>[\w.]+)['\"] permission"
    r"|does not have (?P<storage>\w+(?:\.\w+)+) access"
    r"|[Pp]ermission ['\"](?P<newer>[\w.]+)['\"] (?:is )?denied"
    r"|is missing required permissions|Permission denied on Cloud KMS key"
)
_ENCRYPT: Final = "cloudkms.cryptoKeyVersions.useToEncrypt"
_API_OFF: Final = re.compile(r"API has not been used in project (?P<project>\S+) before or it is")
_SERVICE: Final = re.compile(r"/apis/api/(?P<service>[\w.-]+)/")
_POLICY: Final = re.compile(
    r"[Cc]onstraint `?constraints/[\w.]+`? violated|violates constraint '?constraints/[\w.]+"
    r"|denied by org policy: \[\"constraints/[\w.]+"
    r"|Service account creation is not allowed on this project"
)
# The one sentence that names no constraint.
_ACCOUNT_CREATION: Final = "Service account creation is not allowed"
_CONSTRAINT: Final = re.compile(r"constraints/(?P<name>[A-Za-z.]+)")
# Of a resize request that is to be cancelled, in Compute Engine's words as people have met them.
_ENDED: Final = "that has reached a final state is not possible"
_NOT_THERE: Final = re.compile(r"Machine type with name '[^']+' does not exist in zone")
_MISSING: Final = re.compile(
    r"The resource '[^']+' (?:of type '\w+' )?was not found"
    r"|[Ss]ervice account\b.* does not exist"
    r"|Cross-project references for this resource are not allowed"
    r"|The referenced \w+ resource cannot be found"
    rf"|{_NOT_THERE.pattern}"
)
# What Compute Engine and GKE say of an account that is not everywhere yet, or has no roles yet:
# terraform-google-modules/terraform-google-kubernetes-engine#2002, sassoftware/viya4-iac-gcp#148.
_ACCOUNT: Final = re.compile(
    r"of type 'serviceAccount' was not found|[Ss]ervice account\b.* does not exist"
    r"|user does not have access to service account|Verify if principal exists"
)
# The sentences that the autoscaler of Kubernetes on Google Cloud takes for errors of the
# reservation; their code, CONDITION_NOT_MET, is also that of policies. A reservation that is full
# or not READY is no such error: it may get free, or ready. SkyPilot's issue 3327 has the one about
# what can not be targeted.
_RESERVATION: Final = re.compile(
    r"Specified reservations? .*(?:do|does) not exist"
    r"|Specified reservations? .*can ?not be targeted"
    r"|No available resources in specified reservations"
    r"|Could not find the given reservation with the following name"
    r"|must use ReservationAffinity of"
    r"|The reservation must exist in the same project as the instance"
    r"|Reservation .* is incorrect for the requested resources"
)
# The last is what GKE says of a node pool (GoogleCloudPlatform/gsutil, issue 1000).
_RESERVED_OUT: Final = re.compile(
    r"Specified reservations? .*does not have available resources for the request"
    r"|Reservation .* does not have sufficient capacity for the requested resources"
    r"|Reservation does not have enough resources for the request"
)
_CONFIGURATION: Final = re.compile(
    r"features are not compatible for creating instance"
    r"|disk type cannot be used by \S+ machine type"
)
# Of GKE's nodes, as its autoscaler takes them.
_ADDRESSES: Final = re.compile(
    r"does not have available private IP space"
    r"|Cannot find pod range with enough available IPs"
)
# Names are paths from "projects/" on; some sentences have none of what is used.
_IN_USE: Final = re.compile(
    r"resource(?:\s+'(?P<used>[^']+)')?\s+is\s+already\s+being\s+used\s+by\s+'?(?P<user>[^\s',]+)"
)
# No refusal: Google does not serve, or somebody in between answers or cuts. In Terraform's words,
# which are those of Go's package googleapi, of its net and of its JSON.
_OUTAGE: Final = re.compile(
    r"googleapi: Error (?:408|429|5(?!01)\d\d):|HTTP response code 5(?!01)\d\d"
    r"|: dial tcp|: connection reset by peer|: i/o timeout|TLS handshake timeout|: unexpected EOF"
    r"|invalid character '<' looking for beginning of value"
)
# Of Python's and OpenSSL's, and of Go's crypto/x509.
_UNTRUSTED: Final = re.compile(
    "CERTIFICATE_VERIFY_FAILED|certificate signed by unknown authority|x509: certificate"
)
# Pattern of a message -> what it means; the first match counts.
_SENTENCES: Final = (
    (_CONFIGURATION, Refusal.CONFIGURATION),
    (_RESERVATION, Refusal.RESERVATION),
    (_RESERVED_OUT, Refusal.RESERVED_OUT),
    (_STOCKOUT, Refusal.STOCKOUT),
    (_SOME_QUOTA, Refusal.QUOTA),
    (_ADDRESSES, Refusal.ADDRESSES),
    (_API_OFF, Refusal.API_OFF),
    (_PERMISSION, Refusal.PERMISSION),
    (_POLICY, Refusal.POLICY),
    (_MISSING, Refusal.MISSING),
    (_IN_USE, Refusal.IN_USE),
)


def read(code: str, message: str) -> Refusal | None:
    """What a refusal means; None for a transient or unknown one.

    `code`: Google's code or reason; "" if there is none, as in Terraform's output.
    """
    # Some APIs send a message about a quota with the code of a stock-out.
    if quota(message) is not None:
        return Refusal.QUOTA
    # Nor is a stock-out what a request gets whose parts do not go together.
    if _CONFIGURATION.search(message):
        return Refusal.CONFIGURATION
    if code in _CODES:
        return _CODES[code]
    by_part = next((kind for part, kind in _PARTS_OF_CODES.items() if part in code), None)
    if by_part is not None:
        return by_part
    return next((kind for pattern, kind in _SENTENCES if pattern.search(message)), None)


def code_in(message: str, otherwise: Code) -> Code:
    """The code of a problem that Google tells in its own words."""
    if is_untrusted(message):
        return Code.UNTRUSTED
    refusal = read("", message)
    if refusal is None and _OUTAGE.search(message):
        return Code.UNREACHABLE
    return refusal.code if refusal is not None else otherwise


def reach(code: Code | None, message: str) -> Reach:
    """How far a refusal reaches, of which a problem tells."""
    exceeded = quota(message)
    if exceeded is not None and exceeded.everywhere:
        return Reach.EVERYWHERE
    if _NOT_THERE.search(message):
        return Reach.ZONE
    if constraint(message) == _LOCATIONS:
        return Reach.REGION
    return _REACH.get(code, Reach.EVERYWHERE) if code is not None else Reach.EVERYWHERE


def is_untrusted(message: str) -> bool:
    """Whether a connection ended as the other side's certificate is not trusted."""
    return _UNTRUSTED.search(message) is not None


def may_be_late(message: str) -> bool:
    """Whether a refusal may be due to an account or a role that is new: see `YOUNG`."""
    return _ACCOUNT.search(message) is not None


def has_ended(message: str) -> bool:
    """Whether something that was to be cancelled is over already."""
    return _ENDED in message


def constraint(message: str) -> str:
    """The constraint of an organization policy that a message names; "" if it names none."""
    found = _CONSTRAINT.search(message)
    if found:
        return found["name"].rstrip(".")
    return constraints.ACCOUNT_CREATION.name if _ACCOUNT_CREATION in message else ""


def zone(message: str) -> str:
    """The zone in a message; "" if there is none."""
    found = _ZONE.search(message)
    return found["zone"] if found else ""


def quota(message: str) -> Quota | None:
    """The exceeded quota in a message; None if it is not about a quota."""
    found = _QUOTA.search(message)
    if found is None:
        return None
    return Quota(
        metric=found["metric"],
        limit=float(found["limit"]),
        region=found["region"] or "",
        everywhere=found["everywhere"] is not None,
    )


def in_short(message: str, code: str = "") -> str:
    """A refusal in a few words, for who waits; what is not known of is in Google's own."""
    match read(code, message):
        case Refusal.STOCKOUT | Refusal.NOT_YET if place := zone(message):
            return f"{place} has none now"
        case Refusal.QUOTA if found := quota(message):
            return f"the quota {found.metric} is exceeded (limit {found.limit:.15g})"
        case _:
            return " ".join(message.split())


# ------------------------------------------------------------------ Compute Engine's errors


def of_instances(instances: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Google's errors in creating the VMs of a group that do not run yet, without duplicates."""
    found: dict[str, dict[str, Any]] = {}
    for instance in instances:
        if instance.get("instanceStatus") != "RUNNING":
            for error in instance.get("lastAttempt", {}).get("errors", {}).get("errors", []):
                found.setdefault(words(error), error)
    return list(found.values())


def words(error: Mapping[str, Any]) -> str:
    """The message of an error, or its code, in one line."""
    return " ".join(str(error.get("message") or error.get("code", "")).split())


def of_error(error: Mapping[str, Any]) -> Refusal | None:
    """What an error of Compute Engine means; see `read`."""
    return read(str(error.get("code", "")), words(error))


def zones_available(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """The zones that have machines available now, as Google's stock-out errors list them."""
    zones = {
        zone
        for detail in _details(errors)
        for zone in detail.get("errorInfo", {})
        .get("metadatas", {})
        .get("zonesAvailable", "")
        .split(",")
        if zone
    }
    return sorted(zones)


def quota_dimensions(errors: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The dimensions of an exceeded quota, such as its "gpu_family"."""
    dimensions: dict[str, str] = {}
    for detail in _details(errors):
        dimensions |= detail.get("quotaInfo", {}).get("dimensions", {})
    return dimensions


def _details(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [detail for error in errors for detail in error.get("errorDetails", [])]


# ------------------------------------------------------------------ missing rights


def remedy(message: str) -> str:
    """How to fix what a message tells; "" for what is not known.

    Known are certificates, permissions, APIs that are off, policies, what is in use, and outages.
    """
    if is_untrusted(message):
        return TRUST
    off = _API_OFF.search(message)
    if off is not None:
        return _enabling(message, off["project"])
    found = _PERMISSION.search(message)
    if found is not None and found.lastgroup is not None:
        return _granting(found[found.lastgroup])
    if read("", message) is Refusal.POLICY:
        return _excepting(constraint(message))
    if held := _IN_USE.search(message):
        return _freeing(held["used"] or "it", held["user"])
    return AGAIN if code_in(message, Code.GOOGLE_REFUSED) is Code.UNREACHABLE else ""


def _freeing(used: str, user: str) -> str:
    """Who holds something, and what releases it."""
    holder = user.rpartition("/")[2]
    way = "is deleted or replaced" if "/instances/" in user else "is deleted, or uses it no more"
    of_group = "; VMs of this cluster: Create --replace-vms" if "/instances/" in user else ""
    return f"{used.rpartition('/')[2]} is free once {holder} {way} ({user}){of_group}"


def _excepting(name: str) -> str:
    known = constraints.named(name)
    asking = constraints.exception_for(name, "")
    return "\n".join(filter(None, [asking, known.instead if known else ""]))


def _granting(permission: str) -> str:
    if permission == _ENCRYPT:
        return (
            "a service agent of Google's may not use the key of KMS_KEY: Validate says which, and"
            " has the command for whoever keeps the key"
        )
    asking = f"these credentials lack the permission {permission}: ask an administrator of the"
    found = accounts.role_with(permission)
    if found is None:
        return f"{asking} project for it"
    title, role = found
    return f"{asking} project for the role {title} ({role}), which includes it"


def _enabling(message: str, project: str) -> str:
    found = _SERVICE.search(message)
    if found is None:
        return "enable the API that Google names, and wait a few minutes"
    return (
        f"enable the API with: gcloud services enable {found['service']} --project {project}"
        " and wait a few minutes"
    )


def said(text: str) -> str:
    """Google's own words in what its client says of an upload: request, whole answer, and more."""
    found = re.search(r'"message": *"((?:[^"\\]|\\.)*)"', text)
    return found[1] if found else text
