"""Ways in which the simulated cloud misbehaves, to practise and to test what Google may do.

A scenario is named at the start of the server; several are combined with commas ("flaky,slow").
Services that take part in one ask `request.scenarios`; what concerns every request is here.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.cloud import faults, real_programs
from rehearsal.cloud.faults import Effect, Fault
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request

MISSING = "missing"

SCENARIOS = {
    "flaky": "a share of the requests is answered 429 or 503, or the connection drops",
    "lost-answer": "the first answer to the making of a network, or else of a template, is lost",
    "slow": "everything takes ten times as long",
    "everywhere": "every zone has every machine type and GPU, and Google gives them in every way",
    "ai-zones": "the project has turned AI zones on",
    "stockout": "the first zone in which VMs are wanted has none to give; other zones have",
    "scarce": "few zones have GPU machines left, each in one way; some come after an hour",
    "quota": "the project's quota of every kind of GPU is 0",
    "no-on-demand-quota": "the quota of GPUs on demand is 0, that of preemptible ones is not",
    "small-quotas": "quotas of networks, addresses, disks and shares are those of a new project",
    "policy-external-ip": "a policy of the organization forbids VMs with an external IP",
    "policy-shielded-vm": "a policy of the organization demands VMs with Secure Boot",
    "policy-guest-attributes": "a policy of the organization forbids guest attributes",
    "policy-accounts": "a policy of the organization forbids to make service accounts",
    "policy-keys": "a policy of the organization forbids to make keys of service accounts",
    "policy-images": "a policy of the organization allows images of few projects alone",
    "policy-locations": "a policy of the organization allows the European Union alone",
    "network-forbidden": "the caller may not use what a host project has, nor make rules there",
    "network-unseen": "the caller may use, but not look at, what a host project has",
    "no-account": "the account that VMs are to act as may not be used",
    "young-account": "an account that was just made is unknown to VMs and GKE for 75 seconds",
    "no-reservation": "reservations that VMs are to come from do not exist",
    MISSING: "what the settings name and the program does not make is not there, such as buckets",
    "queue": "a request for flex start waits for a while, with a reason, and is then granted",
    "some": "a zone gives two VMs of flex start to each group, and no more",
    "never": "a request for flex start is never granted",
    "upgrades": "GKE upgrades control planes and nodes at once, as far as it may",
    "preempted": "Google takes a Spot VM of each group back, and has no other for five minutes",
    "maintenance": "Google gives notice of maintenance to a GPU VM of each group, and maintains",
    "host-error": "the host of a GPU VM of each group fails",
    "startup-fails": "the start-up of one VM fails at one of its steps",
    "bad-gpu": "a GPU of one VM of each group, or node of each pool, counts errors of its memory",
    "full-disk": "the boot disk of one VM of each group has no room left",
    "gpu-error": "a GPU of one node of each GKE pool fails, and is given to no more pods",
    "lost-gpu": "a GPU of one node of each GKE pool falls off its bus; the node stays ready",
    "slow-vm": "one VM of each group, or node of each pool, has half of the others' bandwidth",
    "missing-interface": "the pods of one node of each GKE pool lack one of their interfaces",
    "old-ray": "GKE's Ray operator is older than KubeRay 1.5.1, and knows no tokens",
    "forbidden": "the caller may not make managed instance groups",
    "image-forbidden": "the caller may not boot from images of the project's own",
    "read-only": "the caller may look at everything, and change nothing",
    "submitter": "the caller may run jobs and look at everything, and change nothing else",
    "expired": "Google does not take the access token any more",
    "lock-held": "somebody else holds the lock of every Terraform state, until it is deleted",
    real_programs.SCENARIO: "the programs of jobs on VMs are really run, on this machine",
    "real-provider": "Terraform runs HashiCorp's own google provider in place of its stand-in",
}
"""Name and meaning of every scenario; `real-provider` changes nothing in the cloud."""

REHEARSED = "scenarios/rehearsed"
"""The collection of the scenarios that a cloud has ever been served under."""

_WITHHELD = {
    "forbidden": "compute.instanceGroupManagers.create",
    "image-forbidden": "compute.images.useReadOnly",
}
"""Scenario -> the permission that the caller does not have."""

READ_ONLY = "read-only"
_SUBMITTER = "submitter"
_OF_JOBS = re.compile(r"/kubernetes/.*|/(?:upload/)?storage/.*/o/(?:.*/)?[^/]+-deployment/jobs/.*")
_READS = re.compile(r"\.(?:get|list)[A-Za-z]*$|\.advice\.[A-Za-z]+$")
_ASKS = re.compile(
    r"testIamPermissions$|listManagedInstances$|/advice/|:getIamPolicy$|^/token|^/computeMetadata"
)
"""Requests with a body that change nothing."""

_SLOWNESS = 10.0


def parse(text: str) -> frozenset[str]:
    """The scenarios of a list with commas, "" for none; ValueError if one is not known."""
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    for name in sorted(names - SCENARIOS.keys()):
        raise ValueError(f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return names


STRUCK = "scenarios/struck"
"""The collection of what a scenario has happened to that happens once a start of the cloud."""


VICTIMS = "scenarios/victims"
"""The collection of which machine a scenario is about, as long as its group or pool is there."""


def spare(store: Store, vms: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Let scenarios choose once more, as the group of these VMs is deleted.

    `vms`: path and resource of each; some victims are known by the one, some by the other's name.
    """
    gone = {name for path, vm in vms for name in (path, vm["name"])}
    for name, victim in list(store.list(VICTIMS)):
        if victim.get("vm") in gone:
            store.delete(VICTIMS, name)


def renew(store: Store) -> None:
    """Let such scenarios happen once more: the cloud was started."""
    for name, _ in list(store.list(STRUCK)):
        store.delete(STRUCK, name)


def rate(scenarios: frozenset[str], clock_rate: float) -> float:
    """Seconds of wall time per second of cloud time under these scenarios."""
    return clock_rate * _SLOWNESS if "slow" in scenarios else clock_rate


def is_withheld(permission: str, scenarios: frozenset[str]) -> bool:
    """Whether the caller lacks a permission under these scenarios."""
    if scenarios & {READ_ONLY, _SUBMITTER} and not _READS.search(permission):
        return True
    return any(_WITHHELD.get(name) == permission for name in scenarios)


def is_forbidden(request: Request) -> bool:
    """Whether a request would change something, and the caller may only look."""
    reads = request.method in {"GET", "HEAD"} or _ASKS.search(request.path)
    if reads or not request.scenarios & {READ_ONLY, _SUBMITTER}:
        return False
    is_submitted = _SUBMITTER in request.scenarios and (
        # Whoever has the name of an upload that was begun may go on with it.
        "upload_id" in request.query or _OF_JOBS.fullmatch(faults.subject(request))
    )
    return not is_submitted


_FAULTS = (
    Fault(Effect.REFUSE, 429),
    Fault(Effect.REFUSE, 429),
    Fault(Effect.REFUSE, 503),
    Fault(Effect.REFUSE, 503),
    Fault(Effect.REFUSE),
    Fault(Effect.LOSE, 503),
    Fault(Effect.LOSE),
)
_LOTS = 50  # out of so many requests, about one meets each entry of `_FAULTS`

_PATIENCE = 2  # the same request fails at most so often in a row: less than any client tries


def fault(request: Request, store: Store) -> Fault | None:
    """What `flaky` does to this request, or None.

    Pseudo-random, but the same for the same requests in the same order on a new database.
    `request`: its path is the whole one here, the service's prefix included.
    """
    if "lost-answer" in request.scenarios and _makes_first(request, store):
        return Fault(Effect.LOSE, 503)
    if "flaky" not in request.scenarios or not _survivable(request):
        return None
    name = f"{request.method} {request.path}"
    met = store.get("flaky", name) or {"failures": 0}
    lot = _draw(store.count("flaky"))
    found = _FAULTS[lot] if lot < len(_FAULTS) and met["failures"] < _PATIENCE else None
    if found is not None and found.effect is Effect.LOSE and _is_storage(request):
        found = Fault(Effect.REFUSE, found.number)
    store.put("flaky", name, {"failures": met["failures"] + 1 if found else 0})
    return found


def _makes_first(request: Request, store: Store) -> bool:
    """Whether this is the first request of the cloud's life that makes one of these."""
    if request.method != "POST" or not request.path.endswith(("/networks", "/instanceTemplates")):
        return False
    return store.count("lost-answer") == 1


def _draw(number: int) -> int:
    digest = hashlib.sha256(f"flaky {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % _LOTS


def _is_storage(request: Request) -> bool:
    return request.path.startswith(("/storage/", "/upload/storage/"))


def _survivable(request: Request) -> bool:
    """Whether Google's own clients try such a request again.

    They repeat a change in Cloud Storage only under a precondition on the generation, and an
    effect without an answer would make that precondition fail: neither is put on them.
    """
    if not _is_storage(request) or request.method == "GET":
        return True
    return not {"ifGenerationMatch", "ifMetagenerationMatch"}.isdisjoint(request.query)
