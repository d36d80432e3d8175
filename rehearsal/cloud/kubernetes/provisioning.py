"""GKE's autoscaler on ProvisioningRequests: all nodes of a request at once, or none.

States, reasons and delays are those of its published source (2026-08-21): pending until a pool
takes all pods, two minutes at most; accepted until Compute Engine grants the nodes, without end;
provisioned; its booking over after ten minutes, whether pods run or not; revoked when its run is
over.

Which group of which pool takes all pods of a ProvisioningRequest, or why none does.

The order of the reasons is that of GKE's autoscaler's published source (2026-08-21): the first that
any pool has is told.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud.kubernetes import checks, google, objects, pools, reasons
from rehearsal.cloud.kubernetes.google import Answer
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.pools import Pool
from rehearsal.cloud.kubernetes.reasons import Said

CLASS: Final = "queued-provisioning.gke.io"
_PREFIX: Final = "for "
_LOOP: Final = "autoscaler"

# Seconds of cloud time.
_PERIOD: Final = 10.0
_PATIENCE: Final = 120.0  # how long a request may be without a place, or its resize request lost
_BOOKED: Final = 600.0
_KEPT: Final = 3600.0  # how long a resize request stays after its request ended or got its nodes
_REMEMBERED: Final = 7 * 86_400.0
_LONGEST_RUN: Final = 604_800

_RUN: Final = "maxRunDurationSeconds"
_VALID: Final = "ValidUntilSeconds"
_MOST_A_LOOP: Final = 5
_MANAGERS: Final = "/instanceGroupManagers/"
_NAME_PART: Final = 20


def look(world: World) -> None:
    """One loop over the requests, if it is time for one; what nobody wants any more is given up."""
    kind = world.own(*checks.REQUESTS)
    every = [it for it in world.each(kind) if it["spec"].get("provisioningClassName") == CLASS]
    asked = world.cluster.collection(google.ASKED)
    kept = dict(world.store.list(asked, _PREFIX))
    if not (every or kept) or not _is_time(world):
        return
    wanted = {_PREFIX + it["metadata"]["uid"] for it in every}
    for key, it in kept.items():
        if key not in wanted and google.withdraw(world.request, world.store, **it):
            world.store.delete(asked, key)
    if kept.keys() - wanted:
        world.wake(world.request.after(_PERIOD))
    google.release(world, kept.values())
    told: set[str] = set()
    started = 0
    for request in sorted(every, key=lambda it: (it.get("_created", world.now), _name(it))):
        request.setdefault("_created", world.now)
        if _is_forgotten(world, request):
            world.remove(kind, request)
            continue
        started += _advance(world, request, told, may_start=started < _MOST_A_LOOP)
        world.put(kind, request)


def _is_time(world: World) -> bool:
    """Whether the next loop has come; otherwise it is noted."""
    collection = world.cluster.collection(_LOOP)
    after = (world.store.get(collection, "next") or {}).get("moment", 0.0)
    if after > world.now:
        world.wake(after)
        return False
    world.store.put(collection, "next", {"moment": world.request.after(_PERIOD)})
    return True


def _is_forgotten(world: World, request: Object) -> bool:
    over = request.get("_over")
    return over is not None and bool(world.request.rate) and _has_passed(world, over, _REMEMBERED)


def _has_passed(world: World, since: float, seconds: float) -> bool:
    """Whether so much cloud time has passed; if not, the autoscaler looks again when it has."""
    moment = since + seconds * world.request.rate
    world.wake(moment)
    return moment <= world.now


def _advance(world: World, request: Object, told: set[str], *, may_start: bool) -> bool:
    """Take a request one step further; whether nodes were asked for."""
    if objects.holds(request, "Failed") or objects.holds(request, "CapacityRevoked"):
        _clean(world, request)
    elif objects.holds(request, "Provisioned"):
        _expire(world, request)
    elif _is_late(world, request):
        _fail(world, request, reasons.LATE)
    elif objects.holds(request, "Accepted"):
        _await(world, request)
    elif not objects.condition(request, "Accepted"):
        _say(world, request, "Accepted", reasons.NOT_ACCEPTED, holds=False)
        world.wake(world.request.after(_PERIOD))
    else:
        world.wake(world.request.after(_PERIOD))
        return _queue(world, request, told, may_start=may_start)
    return False


def _is_late(world: World, request: Object) -> bool:
    text = str((request["spec"].get("parameters") or {}).get(_VALID, ""))
    if not text.isdecimal() or not int(text) or not world.request.rate:
        return False
    return _has_passed(world, request["_created"], float(text))


# ------------------------------------------------------------------ pending


def _queue(world: World, request: Object, told: set[str], *, may_start: bool) -> bool:
    """Find a place for a request and ask for its nodes; whether they were asked for."""
    asked = _asked(world, request)
    if asked is not None:
        _take(world, request, asked, google.request_for_nodes(world.request, world.store, **asked))
        return False
    run = _run(request)
    if isinstance(run, Said):
        _fail(world, request, run)
        return False
    last = _has_passed(world, request["_created"], _PATIENCE)
    sets = _pod_sets(world, request, last=last)
    place = sets if isinstance(sets, Said) else choose(world, sets, last=last)
    if isinstance(place, Said):
        # Of requests for alike pods without a place, only the oldest is told.
        alike = repr(sets)
        if alike not in told:
            told.add(alike)
            _say(world, request, "Accepted", place, holds=False)
            if last:
                _fail(world, request, place)
        return False
    return may_start and _ask(world, request, place, run)


def _run(request: Object) -> int | Said:
    """How many seconds the nodes of a request run; the pool is not asked."""
    text = (request["spec"].get("parameters") or {}).get(_RUN)
    if text is None:
        return _LONGEST_RUN
    try:
        return int(text, 10)
    except ValueError:
        return reasons.unreadable_run(text)


def _pod_sets(world: World, request: Object, *, last: bool) -> list[PodSet] | Said:
    sets = request["spec"].get("podSets") or []
    names = [it["podTemplateRef"]["name"] for it in sets]
    namespace = request["metadata"]["namespace"]
    found = {name: world.get(world.own(*checks.TEMPLATES), namespace, name) for name in names}
    missing = [name for name, it in found.items() if it is None]
    if missing:
        return reasons.missing_templates(missing, len(names), failed=last)
    specs = [((found[name] or {}).get("template") or {}).get("spec") or {} for name in names]
    return [PodSet(spec, int(it["count"])) for spec, it in zip(specs, sets, strict=True)]


def _ask(world: World, request: Object, place: Place, run: int) -> bool:
    metadata, names = request["metadata"], request["spec"]["podSets"]
    kept = {"group": place.group, "name": resize_request(metadata["namespace"], metadata["name"])}
    if google.request_for_nodes(world.request, world.store, **kept).state != google.MISSING:
        return False  # of a request of the same name before; it goes first
    answer = google.ask_for_nodes(world, **kept, count=place.count, seconds=run)
    base, _, group = place.group.partition(_MANAGERS)
    zone = base.rpartition("/")[2]
    request["status"]["provisioningClassDetails"] = {
        "NodeGroupName": f"https://www.googleapis.com/compute/v1/{base}/instanceGroups/{group}",
        "ResizeRequestName": kept["name"],
        "NodePoolName": place.pool.name,
        "AcceleratorType": place.pool.gpu[0],
        "SelectedZone": zone,
        "NodePoolAutoProvisioned": "false",
        "PodTemplateName": ", ".join(it["podTemplateRef"]["name"] for it in names),
        "ProvisioningMode": "resize_request",
    }
    request["_run"] = run
    key = _PREFIX + metadata["uid"]
    world.store.put(world.cluster.collection(google.ASKED), key, kept)
    _take(world, request, kept, answer)
    return True


def resize_request(namespace: str, name: str) -> str:
    """What the resize request of a ProvisioningRequest is called."""
    digest = hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:16]
    return f"gke-{namespace[:_NAME_PART]}-{name[:_NAME_PART]}-{digest}"


def _take(world: World, request: Object, asked: dict[str, str], answer: Answer) -> None:
    """See whether Compute Engine took a new resize request."""
    if answer.state == "CREATING":
        return
    if answer.state == "FAILED":
        base, _, group = asked["group"].partition(_MANAGERS)
        zone = base.rpartition("/")[2]
        error = answer.errors[0]
        _fail(world, request, reasons.refused(error, group, zone))
        if error.code not in reasons.WITHOUT_BACKOFF:
            google.let_rest(world, asked["group"])
        return
    _say(world, request, "Accepted", reasons.ACCEPTED)
    _await(world, request)


# ------------------------------------------------------------------ accepted, and after


def _await(world: World, request: Object) -> None:
    """See what has become of the resize request of an accepted request."""
    asked = _asked(world, request)
    answer = (
        google.Answer(google.MISSING)
        if asked is None
        else google.request_for_nodes(world.request, world.store, **asked)
    )
    match answer.state:
        case "SUCCEEDED":
            request["_provisioned"] = world.now
            _say(world, request, "Provisioned", reasons.PROVISIONED)
            _expire(world, request)
        case "FAILED":
            _fail(world, request, reasons.ended(answer.errors))
        case "CANCELLED" | google.MISSING:
            lost = request.setdefault("_lost", world.now)
            if _has_passed(world, lost, _PATIENCE):
                cancelled = answer.state == "CANCELLED"
                _fail(world, request, reasons.CANCELLED if cancelled else reasons.MISSING)
        case _:
            said = reasons.waiting(answer.errors)
            if said is not None:
                _say(world, request, "Provisioned", said, holds=False)


def _expire(world: World, request: Object) -> None:
    """End a request's booking, and then the request, by the clock alone: time has to pass."""
    if not world.request.rate:
        return
    since = request["_provisioned"]
    if not objects.holds(request, "BookingExpired"):
        if _has_passed(world, since, _BOOKED):
            _say(world, request, "BookingExpired", reasons.EXPIRED)
            world.wake(world.request.after(_PERIOD))
    elif _has_passed(world, since, float(request["_run"])):
        _say(world, request, "CapacityRevoked", reasons.REVOKED)
        request["_over"] = world.now
    if _has_passed(world, since, _KEPT):
        _drop(world, request)


def _fail(world: World, request: Object, said: Said) -> None:
    _say(world, request, "Failed", said)
    request["_over"] = world.now
    _clean(world, request)


def _clean(world: World, request: Object) -> None:
    """Let the resize request of a request that is over go: one that waits at once."""
    asked = _asked(world, request)
    if asked is None:
        return
    waits = google.request_for_nodes(world.request, world.store, **asked).is_open
    if waits or (world.request.rate and _has_passed(world, request["_over"], _KEPT)):
        _drop(world, request)


def _drop(world: World, request: Object) -> None:
    asked = _asked(world, request)
    if asked is None:
        return
    if google.withdraw(world.request, world.store, **asked):
        key = _PREFIX + request["metadata"]["uid"]
        world.store.delete(world.cluster.collection(google.ASKED), key)
    else:
        world.wake(world.request.after(_PERIOD))


def _asked(world: World, request: Object) -> dict[str, str] | None:
    """What was asked of Compute Engine for a request."""
    key = _PREFIX + request["metadata"]["uid"]
    return world.store.get(world.cluster.collection(google.ASKED), key)


def _name(request: Object) -> str:
    return f"{request['metadata']['namespace']}/{request['metadata']['name']}"


def _say(world: World, request: Object, name: str, said: Said, *, holds: bool = True) -> None:
    """Set a condition; its moment moves with its reason and message too."""
    before = objects.condition(request, name)
    if before and (before["reason"], before["message"]) != (said.reason, said.message):
        request["status"]["conditions"].remove(before)
    objects.tell(world, request, name, holds, said.reason, said.message)
    observed = {"observedGeneration": request["metadata"].get("generation", 1)}
    objects.condition(request, name).update(observed)


_ZONE: Final = "topology.kubernetes.io/zone"
_LARGEST_GROUP: Final = 2000
_QUEUED_TOLERATION: Final = {"key": pools.QUEUED, "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Place:
    """Where the nodes are to come."""

    pool: Pool
    group: str  # the path of its group in Compute Engine
    count: int  # how many nodes


@dataclass(frozen=True)
class PodSet:
    """Some equal pods."""

    spec: Mapping[str, Any]  # what each is made of
    count: int  # how many


class Obstacle(enum.Enum):
    """Why a pool can't grow now."""

    FULL = enum.auto()
    TOO_SMALL = enum.auto()
    AT_REST = enum.auto()
    UNFIT = enum.auto()


def choose(world: World, sets: Sequence[PodSet], *, last: bool) -> Place | Said:
    """Find a group for all pods, or say why there is none.

    `last`: whether the request fails now. One that needs more than what is left of a pool is told
    until then that there is no pool: the autoscaler passes over it in silence.
    """
    sets = [PodSet(_copy(it.spec), it.count) for it in sets]
    found: dict[Obstacle, list[str]] = {}
    unfit: dict[str, Sequence[str]] = {}
    for pool in pools.every(world):
        if not pool.queued:
            continue
        problems = [
            problem for it in sets for problem in (*pool.obstacles(it.spec), *_unmade(it.spec))
        ]
        if problems:
            unfit[pool.name] = list(dict.fromkeys(problems))
            continue
        place = _within(world, pool, sets)
        if isinstance(place, Place):
            return place
        found.setdefault(place, []).append(pool.name)
    full = [*found.get(Obstacle.FULL, []), *(found.get(Obstacle.TOO_SMALL, []) if last else [])]
    if full:
        return reasons.full(full)
    if Obstacle.AT_REST in found:
        return reasons.in_backoff(found[Obstacle.AT_REST])
    if unfit:
        return reasons.unschedulable(unfit)
    return reasons.NO_POOL


def _unmade(spec: Mapping[str, Any]) -> list[str]:
    """What the autoscaler says of pods that are only in its mind: nobody makes their claims.

    Source: kubernetes/autoscaler#10065 (open on 2026-08-03); GKE's own code makes none either.
    """
    return ["ResourceClaim not created yet"] if spec.get("resourceClaims") else []


def _copy(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod as the autoscaler tries it: it tolerates queued nodes, and may be on any request's."""
    selector = {
        key: value
        for key, value in (spec.get("nodeSelector") or {}).items()
        if key != pools.REQUEST
    }
    tolerations = [*(spec.get("tolerations") or []), _QUEUED_TOLERATION]
    return {**spec, "nodeSelector": selector, "tolerations": tolerations}


def _within(world: World, pool: Pool, sets: Sequence[PodSet]) -> Place | Obstacle:
    count = sum(pool.nodes_for(it.spec, it.count) for it in sets)
    obstacles = []
    for group in _groups(pool, sets):
        room = room_in(world, pool, group)
        if room <= 0:
            obstacles.append(Obstacle.FULL)
        elif google.rests(world, group):
            obstacles.append(Obstacle.AT_REST)
        elif room < count:
            obstacles.append(Obstacle.TOO_SMALL)
        else:
            return Place(pool, group, count)
    return min(obstacles, key=lambda it: it.value, default=Obstacle.UNFIT)


def _groups(pool: Pool, sets: Sequence[PodSet]) -> Iterator[str]:
    """The groups of a pool in the zones that the pods may be in."""
    zones = {(it.spec.get("nodeSelector") or {}).get(_ZONE) for it in sets} - {None}
    for group in pool.groups:
        if not zones or zones == {group.split("/zones/")[1].split("/")[0]}:
            yield group


def room_in(world: World, pool: Pool, group: str) -> int:
    """How many more nodes a group may have: what the pool's groups have been asked for counts."""
    own = pools.size_of(world, group)
    others = pools.size(world, pool) - own
    return min(pool.most - others, _LARGEST_GROUP) - own
