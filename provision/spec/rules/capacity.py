"""Rules about capacity modes that exclude each other, and about what they support."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from provision.catalogue import limits, machines
from provision.catalogue.machines import Binding, Consumption, Offered
from provision.codes import Code
from provision.settings.choices import Way
from provision.spec import pools
from provision.spec.capacity import ASKED_FOR, EXCLUSIVE, POOL_KEYS, asking_for
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.machines import MachineType
    from provision.settings.gke import NodePool

RULES: Final = Rules()


def of_pool(pool: NodePool, case: Case) -> Iterator[Finding]:
    """Check one node pool, with the cluster-wide values for what it does not set."""
    wanted = dict(pools.asking(pool, case.settings))
    own = {name for name, key in POOL_KEYS.items() if getattr(pool, key) is not None}
    for one, other, why in _conflicts(wanted):
        if own & {one, other}:  # otherwise the cluster-wide rule reports it, once
            yield Finding(
                field=POOL_KEYS.get(one, one),
                what=f"can't be combined with {POOL_KEYS.get(other, other)}",
                why=why,
                fix="choose one of them",
            )
    for it in (*_flex_compact(pool.vm_type, wanted), *_placement(pool.vm_type, wanted)):
        # A setting of the whole cluster would not win over the key of a pool.
        yield replace(it, field=POOL_KEYS[it.field], fix=f"{POOL_KEYS[it.field]}=no")
    if wanted["enable_flex_start"] or wanted["enable_queued_provisioning"]:
        own_run = pool.max_run_duration
        asked = case.settings.max_run_duration if own_run is None else own_run
        yield from _too_short(asked, "a pool of flex start or a queue", fix="10m would pass")
    if wanted["reservation_name"] and (pool.max_run_duration or case.asked("max_run_duration")):
        yield from _bound_run(pool.vm_type)


def _conflicts(wanted: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    for one, other, why in EXCLUSIVE:
        if wanted.get(one) and wanted.get(other):
            yield one, other, why


def _flex_compact(vm_type: str, wanted: Mapping[str, object]) -> Iterator[Finding]:
    family = machines.family(vm_type)
    *others, last = machines.compact_with_flex_start()
    both = wanted["enable_compact_placement"] and wanted["enable_flex_start"]
    if both and family is not None and not family.flex_compact:
        yield Finding(
            code=Code.NOT_OFFERED,
            field="enable_compact_placement",
            what=f"can't be combined with flex start for {vm_type}",
            why=f"with flex start, only {', '.join(others)} and {last} support compact placement",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )


def _placement(vm_type: str, wanted: Mapping[str, object]) -> Iterator[Finding]:
    """What does not support compact placement: some families, and plain reservations.

    Sources: Google's page on compact placement and workload policies; Cluster Toolkit v1.95.0
    (resume.py: of reservations, dense ones alone take a policy that is not their own).
    """
    family = machines.family(vm_type)
    if not wanted["enable_compact_placement"] or family is None:
        return
    if not family.compact:
        yield Finding(
            code=Code.NOT_OFFERED,
            field="enable_compact_placement",
            what=f"is not available for {vm_type}",
            why=f"Google's compact placement does not support {family.title} machines",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )
    elif wanted["reservation_name"] and family.binding is Binding.NEVER:
        yield Finding(
            field="enable_compact_placement",
            what="can't be combined with RESERVATION_NAME",
            why=f"the reservations of {family.title} are plain ones, which take no placement policy"
            " but their own; if a reservation has one, its machines get it without this setting",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )


def _bound_run(vm_type: str) -> Iterator[Finding]:
    if machines.binding(vm_type) is Binding.ALWAYS:
        yield Finding(
            field="max_run_duration",
            what=f"can't be combined with a reservation of {vm_type}",
            why="such machines are bound to their reservation (RESERVATION_BOUND) and end with it:"
            " Google takes no other end",
            fix="remove MAX_RUN_DURATION",
        )


@RULES.on("capacity")
def _instead(case: Case) -> Iterator[Finding]:
    """CAPACITY stands in place of the settings that ask for one way."""
    settings, ways = case.settings, case.settings.capacity
    if ways is None:
        return
    others = {"enable_spot", "enable_flex_start", "enable_queued_provisioning"}
    for name in sorted(others.intersection(settings.given)):
        yield Finding(
            field="capacity",
            what=f"stands in place of {name.upper()}",
            why="two settings would say how to get machines",
            fix=f"remove {name.upper()}, or CAPACITY",
        )
    named = "reservation_name" in settings.given
    if Way.RESERVATION in ways and not named:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="capacity",
            what="names a reservation, and RESERVATION_NAME is not set",
            why="machines come from a reservation that is named",
            fix="RESERVATION_NAME=my-reservation, or remove reservation from CAPACITY",
        )
    elif named and Way.RESERVATION not in ways:
        yield Finding(
            field="capacity",
            what="leaves out reservation, and RESERVATION_NAME is set",
            why="no way that it names takes machines from the reservation",
            fix=f"remove RESERVATION_NAME, or CAPACITY=reservation,{','.join(ways)}",
        )


@RULES.on(
    *("capacity", "gke_node_pools", "instance_count"),
    *("gke_min_node_count", "gke_max_node_count", "vm_type"),
)
def _ways_of_nodes(case: Case) -> Iterator[Finding]:
    """A way of CAPACITY is left only where Google has refused it, which it does at a Create."""
    settings, ways = case.settings, case.settings.capacity or ()
    if not case.is_gke or not ways:
        return
    if settings.gke_node_pools is not None:
        yield Finding(
            field="capacity",
            what="can't be combined with GKE_NODE_POOLS",
            why="each pool there says itself how its nodes are got",
            fix="remove CAPACITY, or GKE_NODE_POOLS",
        )
        return
    later = [way for way in ways if any(it.size.first == 0 for it in pools.of(settings.by(way)))]
    if not later or later == [ways[-1]]:
        return
    asked = [way for way in ways if way not in later]
    yield Finding(
        field="capacity",
        what=f"can't go on after {later[0]}",
        why="its nodes come when a job wants them, so that Create asks for none, and hears no"
        " refusal",
        fix=f"CAPACITY={','.join([*asked, later[0]])}"
        + ("" if asked else ", or GKE_MIN_NODE_COUNT=1"),
    )


@RULES.on()
def _exclusive(case: Case) -> Iterator[Finding]:
    names = {name for pair in EXCLUSIVE for name in pair[:2]}
    wanted = {name: name not in case.bad and case.value(name) for name in names}
    for one, other, why in _conflicts(wanted):
        yield Finding(
            field=one,
            what=f"can't be combined with {case.name(other)}",
            why=why,
            fix=f"remove {case.name(one)} or {case.name(other)}",
        )


@RULES.on("vm_type", *POOL_KEYS, gke=False)
def _offered(case: Case) -> Iterator[Finding]:
    machine = machines.lookup(case.settings.vm_type)
    if machine is None:
        return
    asked = [way for way, (name, write) in ASKED_FOR.items() if write and case.value(name)]
    for way in asked or [Consumption.ON_DEMAND]:
        yield from _way(case, machine, way)


def _way(case: Case, machine: MachineType, way: Consumption) -> Iterator[Finding]:
    """Say what Google does not offer, or what is not certain, of one way to get a machine type."""
    field, write = ASKED_FOR[way]
    offers = [it for it in Consumption if it in machine.consumption]
    name = f" for {machine.name}" if write else " on demand"
    # Two ways exclude each other.
    mend = asking_for(offers)
    if write and mend:
        mend = f"remove {case.name(field)}, and {mend} in its place"
    match machine.offered(way):
        case Offered.YES:
            return
        case Offered.DOUBTFUL:
            yield Finding(
                code=Code.NOT_OFFERED,
                field=field,
                what=f"may not be available{name}",
                why="Google's pages disagree or do not tell; for certain it is available as:"
                f" {_or(offers)}",
                fix=f"{mend}, if Google refuses it" if mend else "",
                note=True,
            )
        case Offered.NO:
            yield Finding(
                code=Code.NOT_OFFERED,
                field=field,
                what=f"is not available{name}",
                why=f"{machine.name} is available as: {_or(offers)}",
                fix=f"remove {case.name(field)}" if Consumption.ON_DEMAND in offers else mend,
            )


def _or(items: Sequence[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} or {last}" if others else last


@RULES.on("vm_type", "enable_flex_start", gke=False)
def _flex_machine(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if (
        settings.enable_flex_start
        and machines.lookup(settings.vm_type) is None
        and not machines.may_flex_start(settings.vm_type)
    ):
        yield Finding(
            code=Code.NOT_OFFERED,
            field="enable_flex_start",
            what=f"is not available for {settings.vm_type}",
            why="flex start supports H4D and all machine types with GPUs except"
            f" {' and '.join(machines.without_flex_start())}",
            fix=f"VM_TYPE=a3-highgpu-8g, or remove {case.name('enable_flex_start')}",
        )


@RULES.on("instance_count", gke=False)
def _one_group(case: Case) -> Iterator[Finding]:
    most = limits.MOST_VMS
    if case.settings.instance_count > most:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="instance_count",
            what="is more than one group can have",
            why=f"a group in a zone, and a request of flex start, has at most {most} VMs",
            fix=f"INSTANCE_COUNT={most}, and another cluster with a different NAME_PREFIX for the"
            " rest",
        )


@RULES.on(
    "vm_type",
    "gke_node_pools",
    "enable_compact_placement",
    "enable_flex_start",
    "reservation_name",
)
def _compact(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.gke_node_pools is None:
        wanted = {name: case.value(name) for name in POOL_KEYS}
        yield from _flex_compact(settings.vm_type, wanted)
        family = machines.family(settings.vm_type)
        both = settings.enable_compact_placement and settings.enable_flex_start
        if both and not case.is_gke and family is not None and family.flex_compact:
            yield Finding(
                code=Code.NOTE,
                field="enable_compact_placement",
                what="may be refused by Google with flex start",
                why=f"one of Google's pages lists {family.title} for it; that on groups of A4 and"
                " A3 Ultra forbids it with flex start",
                fix="ENABLE_COMPACT_PLACEMENT=no",
                note=True,
            )
        yield from _placement(settings.vm_type, wanted)


@RULES.on("vm_type", "gke_node_pools", "reservation_name", "max_run_duration")
def _bound(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if (
        settings.gke_node_pools is None
        and settings.reservation_name
        and case.asked("max_run_duration")
    ):
        yield from _bound_run(settings.vm_type)


@RULES.on("vm_type", "instance_count", gke=False)
def _one_topology(case: Case) -> Iterator[Finding]:
    settings = case.settings
    family = machines.family(settings.vm_type)
    if family is None or family.topology is None:
        return
    most = family.in_topology
    if settings.instance_count > most:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="instance_count",
            what=f"is more than one group of {family.title} can have",
            why=f"{most} of its machines make up one accelerator topology ({family.topology}),"
            " and a group has one",
            fix=f"INSTANCE_COUNT={most}, and another cluster with a different NAME_PREFIX for the"
            " rest",
        )


@RULES.on(
    "max_run_duration",
    "enable_flex_start",
    "enable_queued_provisioning",
    "gke_node_pools",
)
def _shortest_run(case: Case) -> Iterator[Finding]:
    settings = case.settings
    requested = settings.enable_flex_start or settings.enable_queued_provisioning
    of_what = "a pool of flex start or a queue" if case.is_gke else "a group of VMs"
    if not case.is_gke or (requested and settings.gke_node_pools is None):
        yield from _too_short(settings.max_run_duration, of_what, fix="MAX_RUN_DURATION=10m")


def _too_short(seconds: int | None, what: str, *, fix: str) -> Iterator[Finding]:
    if seconds is not None and seconds < limits.SHORTEST_GROUP_RUN:
        yield Finding(
            code=Code.INVALID_VALUE,
            field="max_run_duration",
            what=f"is too short for {what}",
            why="10m to 7d",
            fix=fix,
        )
