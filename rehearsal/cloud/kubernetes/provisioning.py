"""GKE's autoscaler on ProvisioningRequests: all nodes of a request at once, or none."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import capacity, checks, nodes, objects, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.capacity import Answer
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.pools import Pool

CLASS: Final = "queued-provisioning.gke.io"
_PREFIX: Final = "for "
_BOOKED: Final = 600.0
"""Seconds of cloud time in which pods have to start on new nodes (rule Q12)."""
_DURATION: Final = "maxRunDurationSeconds"

# Compute Engine's code -> the reason of the condition (rule Q13).
_REASONS: Final = {
    "QUOTA_EXCEEDED": "QuotaExceeded",
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": "ResourcePoolExhausted",
}
_WAITING: Final = "NotProvisioned"
_INDEFINITE: Final = "Expected time is indefinite."


def look(world: World) -> None:
    """Take each request as far as it goes; what was asked for one that is gone is cancelled."""
    kind = world.kind(*checks.REQUESTS)
    if kind is None:
        return
    known = set()
    for request in world.each(kind):
        known.add(request["metadata"]["uid"])
        if request["spec"].get("provisioningClassName") == CLASS:
            _advance(world, request)
            world.put(kind, request)
    collection = world.cluster.collection(capacity.ASKED)
    for key, asked in list(world.store.list(collection, _PREFIX)):
        pool = _pool(world, asked["group"])
        if pool is None or key.removeprefix(_PREFIX) not in known:
            capacity.cancel(world.request, world.store, **asked)
        if key.removeprefix(_PREFIX) not in known:
            world.store.delete(collection, key)


def _advance(world: World, request: Object) -> None:
    if objects.holds(request, "Failed") or objects.holds(request, "BookingExpired"):
        return
    if objects.holds(request, "Provisioned"):
        _watch_booking(world, request)
        return
    asked = _asked(world, request)
    if asked is None:
        answer = _ask(world, request)
    else:
        answer = capacity.find(world.request, world.store, **asked)
    if answer is not None:
        _tell(world, request, answer)


def _asked(world: World, request: Object) -> dict[str, str] | None:
    """What was asked of Compute Engine for a request."""
    key = _PREFIX + request["metadata"]["uid"]
    return world.store.get(world.cluster.collection(capacity.ASKED), key)


def _ask(world: World, request: Object) -> Answer | None:
    """Ask for the nodes of a new request, if a pool can have them."""
    sets = request["spec"].get("podSets") or []
    if len(sets) != 1:
        words = "A ProvisioningRequest of this class has exactly one set of pods"
        objects.tell(world, request, "Failed", True, "InvalidRequest", words)
        return None
    templates = world.kind(*checks.TEMPLATES)
    namespace, name = request["metadata"]["namespace"], sets[0]["podTemplateRef"]["name"]
    found = world.get(templates, namespace, name) if templates else None
    spec = ((found or {}).get("template") or {}).get("spec") or {}
    for pool in pools.every(world):
        count = pool.nodes_for(spec, int(sets[0]["count"]))
        if not (pool.queued and pool.takes(spec) and _room(world, pool) >= count):
            continue
        uid = request["metadata"]["uid"]
        short = f"gke-{world.cluster.key[:8]}-{hashlib.sha256(uid.encode()).hexdigest()[:16]}"
        kept = {"group": pool.groups[0], "name": short}
        world.store.put(world.cluster.collection(capacity.ASKED), _PREFIX + uid, kept)
        given = (request["spec"].get("parameters") or {}).get(_DURATION)
        return capacity.ask(world, **kept, count=count, seconds=int(given) if given else None)
    words = "No node pool with queued provisioning has room for the pods."
    objects.tell(world, request, "Provisioned", False, _WAITING, words)
    return None


def _room(world: World, pool: Pool) -> int:
    """How many more nodes a pool may have, those that are asked for counted as there."""
    return pool.most - pools.size(world, pool)


def _tell(world: World, request: Object, answer: Answer) -> None:
    """Turn what Compute Engine says into conditions."""
    if answer.state == "CREATING":
        return
    if answer.state in ("FAILED", "CANCELLED"):
        reason = _REASONS.get(answer.code, "ProvisioningFailed")
        words = answer.message or "The resize request was cancelled."
        if reason == "ResourcePoolExhausted":
            words = f"{words} {_INDEFINITE}"
        objects.tell(world, request, "Provisioned", False, reason, words)
        objects.tell(world, request, "Failed", True, reason, words)
        return
    accepted = "Provisioning Request was accepted."
    objects.tell(world, request, "Accepted", True, "SuccessfullyQueued", accepted)
    if answer.state == "ACCEPTED":
        words = f"Waiting for resources. {answer.message or 'Provisioning has begun.'}"
        objects.tell(world, request, "Provisioned", False, _WAITING, words)
        return
    asked = _asked(world, request) or {}
    pool = _pool(world, asked["group"])
    if pool is None:
        return
    request["status"]["provisioningClassDetails"] = {
        "NodePoolName": pool.name,
        "SelectedZone": asked["group"].split("/zones/")[1].split("/")[0],
        "ResizeRequestName": asked["name"],
    }
    if len(nodes.ready(world, pool.name)) >= pools.size(world, pool):
        words = "Provisioning Request was successfully provisioned."
        objects.tell(world, request, "Provisioned", True, "SuccessfullyProvisioned", words)
        request["_booked"] = world.now


def _watch_booking(world: World, request: Object) -> None:
    """The nodes are kept for their pods for a while only; time has to pass for that."""
    over = request["_booked"] + _BOOKED * world.request.rate
    if not world.request.rate or over > world.now or request.get("_used"):
        return
    name = request["metadata"]["name"]
    kind = world.kind("v1", "pods")
    request["_used"] = any(
        (it["metadata"].get("annotations") or {}).get(checks.CONSUME) == name
        for it in (world.each(kind) if kind else ())
    )
    if not request["_used"]:
        words = "Capacity booking for the Provisioning Request has expired."
        objects.tell(world, request, "BookingExpired", True, "BookingExpired", words)


def _pool(world: World, group: str) -> Pool | None:
    """The pool that a group belongs to; None when it is being deleted."""
    return next((pool for pool in pools.every(world) if group in pool.groups), None)
