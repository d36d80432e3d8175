"""Kueue's queues: what a job may take of which flavor."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from rehearsal.cloud.kubernetes import jobs, objects, quantities
from rehearsal.cloud.kubernetes.jobs import PodSet
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

API: Final = "kueue.x-k8s.io/v1beta2"
_TOPOLOGY: Final = frozenset(
    f"kueue.x-k8s.io/podset-{how}-topology" for how in ("preferred", "required", "unconstrained")
)
"""The annotations of pods whose nodes Kueue chooses by where they stand."""
_STOPPED: Final = frozenset({"Hold", "HoldAndDrain"})

Usage = dict[tuple[str, str], Decimal]  # what is taken of a queue, by flavor and resource


@dataclass(frozen=True)
class Place:
    """What a queue gives to a job."""

    queue: str
    assignments: list[Object]  # as a Workload's `podSetAssignments`


def find(world: World, plural: str, name: str, namespace: str = "") -> Object | None:
    """An object of Kueue's."""
    kind = world.kind(API, plural)
    return world.get(kind, namespace, name) if kind else None


def look(world: World) -> None:
    """Let queues and checks say whether they are of use."""
    for plural, judge in (
        ("admissionchecks", _check_obstacle),
        ("clusterqueues", obstacle),
        ("localqueues", _local_obstacle),
    ):
        kind = world.kind(API, plural)
        for thing in world.each(kind) if kind else ():
            found = judge(world, thing)
            words = found or ("Ready", _READY[plural])
            objects.tell(world, thing, "Active", found is None, *words)
            if kind is not None:
                world.put(kind, thing)


_READY: Final = {
    "admissionchecks": "The admission check is active",
    "clusterqueues": "Can admit new workloads",
    "localqueues": "Can submit new workloads to localQueue",
}


def _check_obstacle(world: World, check: Object) -> tuple[str, str] | None:
    if config_of(world, check) is None:
        return "BadParametersRef", "the provisioning request config does not exist"
    return None


def config_of(world: World, check: Object) -> Object | None:
    """The configuration that a check names."""
    named = (check["spec"].get("parameters") or {}).get("name", "")
    return find(world, "provisioningrequestconfigs", named)


def checks_of(queue: Object, workload: Object | None = None) -> list[str]:
    """The checks of a queue, or of its flavors that a workload with quota has; None: of all."""
    strategy = queue["spec"].get("admissionChecksStrategy") or {}
    rules = strategy.get("admissionChecks") or []
    if workload is None:
        return [it["name"] for it in rules]
    taken = {
        flavor
        for pods in workload["status"]["admission"]["podSetAssignments"]
        for flavor in pods["flavors"].values()
    }
    return [
        it["name"] for it in rules if not it.get("onFlavors") or taken.intersection(it["onFlavors"])
    ]


def obstacle(world: World, queue: Object) -> tuple[str, str] | None:
    """Why a ClusterQueue admits nothing, as reason and message; None when it does."""
    if queue["spec"].get("stopPolicy") in _STOPPED:
        return "Stopped", "Can't admit new workloads: is stopped."
    named = [it["name"] for group in _groups(queue) for it in group["flavors"]]
    missing = [it for it in named if find(world, "resourceflavors", it) is None]
    if missing:
        words = f"Can't admit new workloads: references missing ResourceFlavor(s): {missing[0]}."
        return "FlavorNotFound", words
    missing = [it for it in checks_of(queue) if find(world, "admissionchecks", it) is None]
    if missing:
        words = f"Can't admit new workloads: references missing AdmissionCheck(s): {missing[0]}."
        return "AdmissionCheckNotFound", words
    return None


def _local_obstacle(world: World, queue: Object) -> tuple[str, str] | None:
    owner = find(world, "clusterqueues", queue["spec"]["clusterQueue"])
    if owner is None:
        return "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"
    if obstacle(world, owner):
        return "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"
    return None


def _groups(queue: Object) -> list[Object]:
    found: list[Object] = queue["spec"].get("resourceGroups") or []
    return found


def queue_of(world: World, workload: Object) -> Object | str:
    """The ClusterQueue that a workload goes to, or why there is none of use."""
    named = workload["spec"].get("queueName", "")
    local = find(world, "localqueues", named, workload["metadata"]["namespace"])
    if local is None:
        return f"LocalQueue {named} doesn't exist"
    owner = local["spec"]["clusterQueue"]
    queue = find(world, "clusterqueues", owner)
    if queue is None:
        return f"ClusterQueue {owner} doesn't exist"
    return f"ClusterQueue {owner} is inactive" if obstacle(world, queue) else queue


def usage(workloads: Iterable[Object], queues: Collection[str]) -> Usage:
    """What workloads have taken of some queues."""
    total: Usage = {}
    for workload in workloads:
        if holder(workload) in queues:
            status = workload["status"]
            freed = {it["name"]: it["count"] for it in status.get("reclaimablePods") or []}
            _add(total, status["admission"]["podSetAssignments"], freed)
    return total


def holder(workload: Object) -> str:
    """The ClusterQueue whose quota a workload has; "" for none."""
    admission = (workload.get("status") or {}).get("admission") or {}
    ended = objects.holds(workload, "Finished")
    return "" if ended else str(admission.get("clusterQueue", ""))


def family(world: World, queue: Object) -> list[Object]:
    """The queues that lend to each other: those of the cohort, or the one alone."""
    cohort = queue["spec"].get("cohortName")
    kind = world.kind(API, "clusterqueues")
    if not cohort or kind is None:
        return [queue]
    return [it for it in world.each(kind) if it["spec"].get("cohortName") == cohort]


def together(queues: Sequence[Object]) -> Object:
    """One queue with the quotas of all; the order and the checks are those of the first."""
    total: dict[tuple[str, str], Decimal] = {}
    for queue in queues:
        for name, resource, quota in _quotas(queue):
            total[name, resource] = total.get((name, resource), Decimal(0)) + quota
    merged = copy.deepcopy(queues[0])
    for group in _groups(merged):
        for flavor in group["flavors"]:
            for entry in flavor["resources"]:
                entry["nominalQuota"] = quantities.shown(total[flavor["name"], entry["name"]])
    return merged


def _quotas(queue: Object) -> Iterator[tuple[str, str, Decimal]]:
    for group in _groups(queue):
        for flavor in group["flavors"]:
            for entry in flavor["resources"]:
                yield flavor["name"], entry["name"], quantities.parse(entry["nominalQuota"])


def borrows(queue: Object, used: Usage) -> bool:
    """Whether a queue has more than its own."""
    own = {(name, resource): quota for name, resource, quota in _quotas(queue)}
    return any(amount > own.get(key, Decimal(0)) for key, amount in used.items())


def _add(
    total: Usage, assignments: Iterable[Object], freed: Mapping[str, int] = MappingProxyType({})
) -> None:
    for it in assignments:
        left = 1 - Decimal(freed.get(it["name"], 0)) / it["count"]
        for resource, flavor in it["flavors"].items():
            amount = quantities.parse(it["resourceUsage"][resource]) * left
            total[flavor, resource] = total.get((flavor, resource), Decimal(0)) + amount


def assign(world: World, queue: Object, sets: Sequence[PodSet], used: Usage) -> Place | str:
    """Find a flavor for each set of pods; or why there is none."""
    taken = dict(used)
    assignments = []
    for pods in sets:
        wanted = {
            name: amount * pods.count for name, amount in quantities.requests(pods.spec).items()
        }
        flavors: dict[str, str] = {}
        for group in _split(queue, wanted):
            if isinstance(group, str):
                return f"couldn't assign flavors to pod set {pods.name}: {group}"
            found = _flavor(world, group, pods, wanted, taken)
            if found.problems:
                words = ", ".join(found.problems)
                return f"couldn't assign flavors to pod set {pods.name}: {words}"
            covered = set(group["coveredResources"])
            flavors |= {name: found.name for name in wanted if name in covered}
        assignment = {
            "name": pods.name,
            "count": pods.count,
            "flavors": flavors,
            "resourceUsage": {name: quantities.shown(wanted[name]) for name in flavors},
        }
        _add(taken, [assignment])
        assignments.append(assignment)
    return Place(queue["metadata"]["name"], assignments)


def _split(queue: Object, wanted: Mapping[str, Decimal]) -> Iterator[Object | str]:
    """The groups of resources that a set of pods takes part in, or what no group has."""
    covered: set[str] = set()
    for group in _groups(queue):
        covered |= set(group["coveredResources"])
        if not set(group["coveredResources"]).isdisjoint(wanted):
            yield group
    for name in wanted:
        if name not in covered:
            yield f"resource {name} unavailable in ClusterQueue"


@dataclass(frozen=True)
class _Choice:
    name: str
    problems: list[str]


def _flavor(
    world: World,
    group: Object,
    pods: PodSet,
    wanted: Mapping[str, Decimal],
    taken: Usage,
) -> _Choice:
    """The first flavor of a group that suits, or what is wrong with each."""
    known = {it["name"]: find(world, "resourceflavors", it["name"]) for it in group["flavors"]}
    labels = {name: _labels(flavor) for name, flavor in known.items()}
    keys = {key for own in labels.values() for key in own}
    selector = {k: v for k, v in (pods.spec.get("nodeSelector") or {}).items() if k in keys}
    problems = []
    for flavor in group["flavors"]:
        name = flavor["name"]
        if (misplaced := _misplaced(name, known[name], pods)) is not None:
            problems.append(misplaced)
            continue
        if not selector.items() <= labels[name].items():
            problems.append(f"flavor {name} doesn't match node affinity")
            continue
        lacking = list(_lacking(flavor, wanted, taken))
        if not lacking:
            return _Choice(name, [])
        problems += lacking
    return _Choice("", problems)


def _misplaced(name: str, flavor: Object | None, pods: PodSet) -> str | None:
    """Why pods can't have a flavor whose nodes Kueue chooses by their place, or one that is none.

    In the words of Kueue 0.19.2 (tas_flavorassigner.go), in a queue that has flavors of both kinds.
    """
    annotations = (pods.template.get("metadata") or {}).get("annotations") or {}
    asked = any(key in _TOPOLOGY for key in annotations)
    has = "topologyName" in ((flavor or {}).get("spec") or {})
    if has and not asked:
        return f'Flavor "{name}" supports only TopologyAwareScheduling'
    if asked and not has:
        return f'Flavor "{name}" does not support TopologyAwareScheduling'
    return None


def _labels(flavor: Object | None) -> dict[str, Any]:
    return dict(((flavor or {}).get("spec") or {}).get("nodeLabels") or {})


def _lacking(flavor: Object, wanted: Mapping[str, Decimal], taken: Usage) -> Iterator[str]:
    name = flavor["name"]
    for entry in flavor["resources"]:
        resource, most = entry["name"], quantities.parse(entry["nominalQuota"])
        amount = wanted.get(resource, Decimal(0))
        missing = amount + taken.get((name, resource), Decimal(0)) - most
        if amount > most:
            yield (
                f"insufficient quota for {resource} in flavor {name}, previously considered"
                f" podsets requests (0) + current podset request ({quantities.shown(amount)}) >"
                f" maximum capacity ({quantities.shown(most)})"
            )
        elif missing > 0:
            yield (
                f"insufficient unused quota for {resource} in flavor {name},"
                f" {quantities.shown(missing)} more needed"
            )


_PRIORITY: Final = "InClusterQueue"
_RECLAIMED: Final = "InCohortReclamation"


@dataclass(frozen=True)
class Entry:
    """A job in a queue."""

    kind: Kind  # the job's
    job: Object
    workload: Object


@dataclass(frozen=True)
class NoPlace:
    """There is no quota now."""

    why: str  # what is missing, in Kueue's words
    # the workloads that are evicted for it, each with the reason; [] for none
    victims: Sequence[tuple[Entry, str]] = ()
    words: str = ""  # what the evicted are told


def place(world: World, entries: Sequence[Entry], entry: Entry, queue: Object) -> Place | NoPlace:
    """The quota that a workload gets, or whom it has to be taken from first."""
    found = _assign(world, queue, entry, entries)
    if not isinstance(found, str):
        return found
    spared = list(entries)
    victims: list[tuple[Entry, str]] = []
    for victim, why in _candidates(world, queue, entry.workload, entries):
        spared.remove(victim)
        victims.append((victim, why))
        if not isinstance(_assign(world, queue, entry, spared), str):
            uid = entry.workload["metadata"]["uid"]
            job = entry.job["metadata"]["uid"]
            words = f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job})"
            return NoPlace(found, victims, words)
    # With fewer pods, where the job says so, if these are free (PartialAdmission, beta since 0.5).
    (pods, *others) = jobs.pod_sets(entry.job)
    for count in range(pods.count - 1, (pods.least or pods.count) - 1, -1):
        fewer = [replace(pods, count=count), *others]
        found_fewer = _assign(world, queue, entry, entries, fewer)
        if not isinstance(found_fewer, str):
            return found_fewer
    return NoPlace(found)


def _assign(
    world: World,
    queue: Object,
    entry: Entry,
    others: Sequence[Entry],
    fewer: Sequence[PodSet] | None = None,
) -> Place | str:
    """Quota of the workload's own queue, or of what the others of its cohort leave."""
    members = family(world, queue)
    first = [queue, *(it for it in members if it["metadata"]["uid"] != queue["metadata"]["uid"])]
    names = {it["metadata"]["name"] for it in first}
    pod_sets = fewer or jobs.pod_sets(entry.job)
    return assign(world, together(first), pod_sets, _used(others, names))


def _candidates(
    world: World, queue: Object, workload: Object, everyone: Sequence[Entry]
) -> list[tuple[Entry, str]]:
    """Those that may be evicted: of least priority first, of equals the youngest."""
    policy = queue["spec"].get("preemption") or {}
    own, priority = queue["metadata"]["name"], workload["spec"]["priority"]
    found: list[tuple[Entry, str]] = []
    for it in everyone:
        lower = it.workload["spec"]["priority"] < priority
        if holder(it.workload) == own:
            if policy.get("withinClusterQueue") == "LowerPriority" and lower:
                found.append((it, _PRIORITY))
        elif _reclaims(policy, lower=lower) and _is_borrowed(world, queue, it.workload, everyone):
            found.append((it, _RECLAIMED))
    found.sort(
        key=lambda each: (each[0].workload["spec"]["priority"], -each[0].workload["_number"])
    )
    return found


def _reclaims(policy: Object, *, lower: bool) -> bool:
    rule = policy.get("reclaimWithinCohort")
    return rule == "Any" or (rule == "LowerPriority" and lower)


def _is_borrowed(world: World, queue: Object, workload: Object, everyone: Sequence[Entry]) -> bool:
    """Whether a workload is of another queue of the cohort, which has more than its own."""
    name = holder(workload)
    for member in family(world, queue):
        if member["metadata"]["name"] == name != queue["metadata"]["name"]:
            return borrows(member, _used(everyone, {name}))
    return False


def _used(entries: Sequence[Entry], names: Collection[str]) -> Usage:
    return usage((entry.workload for entry in entries), names)
