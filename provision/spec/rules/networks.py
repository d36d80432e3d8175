"""Rules about networks: of others, which are named whole, and the ranges of those that are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics, machines, zones
from provision.codes import Code
from provision.settings.choices import NetworkConfig, OnlineCheck, asking_for
from provision.settings.resource_paths import PRIVATE, NetworkPath, SubnetworkPath
from provision.spec import cluster, ranges
from provision.spec.networks import ExistingNetwork
from provision.spec.rules.findings import Case, Finding, Rules
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ipaddress import IPv4Network

    from provision.catalogue.machines import MachineType
    from provision.spec.cluster import ClusterSpec

RULES: Final = Rules()

_NEEDED: Final = ("network", "subnetwork")
_RANGES: Final = ("gke_pods_range", "gke_services_range")
_NAMES: Final = (*_NEEDED, "gpu_subnetworks")
_GPUS: Final = ("network_config", "gpu_subnetworks")
_OWN: Final = ("network_range", *_RANGES, "gke_max_pods_per_node")
_COUNTED: Final = (
    *("vm_type", "instance_count", "gke_node_pools", "gke_node_pool_count"),
    *("gke_min_node_count", "gke_max_node_count", "system_node_pool"),
)
_TAKES: Final = {
    "VMs": "each VM takes an address, and Google keeps 4",
    "nodes": "each node takes an address, the control plane another, and Google keeps 4",
    "pods": "each node takes twice its most pods, rounded up to a power of 2, and a /24 is the"
    " smallest range",
}
"""What a range is for -> how much of it is taken."""


@RULES.on(*_OWN, *_COUNTED, "network_config", "nfs_fileshare_list")
def _own_ranges(case: Case) -> Iterator[Finding]:
    """Check the ranges of networks that are made: apart from each other, and large enough."""
    if not any(map(case.asked, _OWN)):
        return
    settings = case.settings
    is_gke = case.is_gke
    spec: ClusterSpec = cluster.gke(settings) if is_gke else cluster.vms(settings)
    if not spec.makes_network:
        if case.asked("network_range"):
            made = "" if is_gke else "NETWORK_CONFIG=new_network, or "
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field="network_range",
                what=f"has no effect with NETWORK_CONFIG={settings.network_config}",
                why="no network is made, which would get this range",
                fix=f"{made}remove {case.name('network_range')}",
            )
        return
    yield from _apart(case, spec, is_gke=is_gke)
    for part in spec.parts:
        if part.is_too_small:
            yield _too_small(case, part, sum(pool.size.most for pool in spec.pools))
    services = spec.ranges.services
    if is_gke and services.prefixlen not in ranges.SERVICES:
        yield Finding(
            field="gke_services_range",
            what=f"is a /{services.prefixlen}",
            why=f"GKE takes a /{ranges.SERVICES[0]} to a /{ranges.SERVICES[-1]} for Services",
            fix="a /20, which has room for 4,096 Services",
            note=services.prefixlen == ranges.SMALLEST_SERVICES,
        )
    whole = spec.ranges.whole
    if settings.nfs_fileshare_list and not any(whole.subnet_of(it) for it in PRIVATE):
        yield Finding(
            field="network_range",
            what=_usual(case, "network_range", whole)
            + "can't mount the shares of NFS_FILESHARE_LIST",
            why="Filestore lets in clients of 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16 alone",
            fix=f"{case.name('network_range')} in one of these, or a bucket (GCS_MOUNT_LIST)",
        )


def _apart(case: Case, spec: ClusterSpec, *, is_gke: bool) -> Iterator[Finding]:
    """Check that no range overlaps another one of the same network."""
    its = spec.ranges
    every: list[tuple[str, IPv4Network]] = [("network_range", its.whole)]
    every += [("gke_pods_range", its.pods), ("gke_services_range", its.services)] * is_gke
    for field, other in ranges.overlapping(every):
        changed, kept = (field, other) if case.asked(field) else (other, field)
        taken = dict(every)
        usual = "" if case.asked(kept) else f", which is {taken[kept]} if unset"
        yield Finding(
            field=changed,
            what=f"overlaps {case.name(kept)}{usual}",
            why="an address of a network is in one range alone",
            fix=f"another {case.name(changed)} or {case.name(kept)}",
        )


def _usual(case: Case, field: str, value: IPv4Network) -> str:
    """A range that nobody has written, as the beginning of a sentence; others are shown anyway."""
    return "" if case.asked(field) else f"{value} "


def _too_small(case: Case, part: ranges.Part, machines: int) -> Finding:
    is_gke = part.use != "VMs"
    fewer = f"INSTANCE_COUNT={part.fits}" if part.fits else ""
    if is_gke:
        fewer = "fewer nodes (GKE_MAX_NODE_COUNT, max of SYSTEM_NODE_POOL)"
    if part.use == "pods" and (most := ranges.pods_that_fit(part.given, machines)):
        fewer += f", or GKE_MAX_PODS_PER_NODE={most}"
    cut = (
        ""
        if part.range == part.given
        else f", of which each interface has a /{part.range.prefixlen}"
    )
    what = counted(machines, "node" if is_gke else "VM")
    also = ", and one more while they are upgraded" if is_gke else ""
    return Finding(
        code=Code.NO_FREE_ADDRESSES,
        field=part.field,
        what=_usual(case, part.field, part.given)
        + f"has room for {part.fits}, and not for {what}{cut}",
        why=f"{_TAKES[part.use]}{also}",
        fix=f"a /{part.needed} or larger" + (f", or {fewer}" if fewer else ""),
    )


@RULES.on("network_config", *_NAMES, *_RANGES)
def _named(case: Case) -> Iterator[Finding]:
    settings = case.settings
    is_existing = settings.network_config is NetworkConfig.EXISTING
    is_gke = case.is_gke
    needed = _NEEDED + _RANGES if is_gke else _NEEDED
    for name in (*needed, "gpu_subnetworks"):
        if is_existing and case.value(name) is None and name != "gpu_subnetworks":
            yield Finding(
                code=Code.MISSING_SETTING,
                field=name,
                what="is required with NETWORK_CONFIG=existing",
                why="nothing is made there, so what is to be used has to be named",
                fix=f"{case.name(name)}=<its name>, or "
                + ("remove NETWORK_CONFIG" if is_gke else "NETWORK_CONFIG=new_network"),
            )
        elif is_existing and name in _RANGES and ranges.own(case.value(name)):
            yield Finding(
                field=name,
                what="is an IP range, and has to be the name of one",
                why="NETWORK_CONFIG=existing takes a secondary range of SUBNETWORK as it is",
                fix=f"{case.name(name)}=<its name>",
            )
        elif case.asked(name) and not is_existing:
            if name in _RANGES and ranges.own(case.value(name)):
                continue
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field=name,
                what=f"has no effect with NETWORK_CONFIG={settings.network_config}",
                why="only NETWORK_CONFIG=existing uses a network that is named",
                fix=f"NETWORK_CONFIG=existing, or remove {case.name(name)}",
            )


@RULES.on(*_NAMES, *_GPUS, "vm_type", "gke_node_pools", gke=True)
def _on_gke(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.network_config is not NetworkConfig.EXISTING:
        if case.asked("network_config"):
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field="network_config",
                what=f"has no effect with {settings.kind_words}",
                why="a GKE cluster gets the networks that its machine types need, unless it is"
                " existing",
                fix=f"remove {case.name('network_config')}, or NETWORK_CONFIG=existing",
            )
        return
    # Each interface has its subnetwork, so that the number counts as well.
    several = {(it.gpu_network, it.nics): it for it in _machines(case) if it.gpu_network}
    existing = ExistingNetwork.of(settings)
    machine = next(iter(several.values()), None)
    if machine is None or existing is None:
        return
    why, fix = "", "machines with one network, or remove NETWORK_CONFIG"
    if existing.project != settings.project_id:
        why = (
            "on a Shared VPC, nobody could look up in which form GKE takes their networks, and"
            " another form replaces the nodes at each Create"
        )
        fix = f"a VM group ({asking_for('none')}) with GPU_SUBNETWORKS, {fix}"
    elif not settings.gpu_subnetworks:
        why = "their GPUs need networks of their own, and none is made"
        fix = f"GPU_SUBNETWORKS=gpu-{{1..{machine.nics - 1}}}, or the like, {fix}"
    elif len(several) > 1:
        names = " and ".join(it.name for it in several.values())
        why = f"GPU_SUBNETWORKS is for GPU networks of one kind, not for {names}"
        fix = f"pools of one of them, or {fix}"
    if why:
        yield Finding(
            field="network_config",
            what=f"is not for GKE nodes of {machine.name}",
            why=why,
            fix=fix,
        )


def _machines(case: Case) -> list[MachineType]:
    """The machine types that are asked for, as far as they are known."""
    settings = case.settings
    pools = settings.gke_node_pools or () if case.is_gke else ()
    types = [pool.vm_type for pool in pools] or [settings.vm_type]
    return list(filter(None, map(machines.lookup, types)))


@RULES.on(*_NAMES, "zone")
def _together(case: Case) -> Iterator[Finding]:
    """What the two paths say, of each other and of the zone."""
    settings = case.settings
    network = NetworkPath.parse(settings.network or "")
    subnetwork = SubnetworkPath.parse(settings.subnetwork or "")
    if network is None or subnetwork is None:
        return
    if network.project and subnetwork.project and network.project != subnetwork.project:
        yield Finding(
            field="subnetwork",
            what=f"is in {subnetwork.project}, NETWORK in {network.project}",
            why="a subnetwork is in the project of its network",
            fix="paths of one project in both",
        )
    named = map(SubnetworkPath.parse, settings.gpu_subnetworks or ())
    for field, one in (("subnetwork", subnetwork), *(("gpu_subnetworks", it) for it in named)):
        outside = [it for it in settings.places.zones if one and zones.region_of(it) != one.region]
        if one and one.region and outside:
            yield Finding(
                field=field,
                what=f"has {one.name} in {one.region}, where the zone {outside[0]} is not",
                why="machines join subnetworks of their own region only",
                fix=f"a subnetwork in {zones.region_of(outside[0])}, or a ZONE in {one.region}",
            )
            return


@RULES.on("make_firewall", "network_config", "skip_checks")
def _firewall(case: Case) -> Iterator[Finding]:
    """Check that the rules have a network to be made in, and that it can be looked at."""
    settings = case.settings
    if not settings.make_firewall:
        return
    if settings.network_config is not NetworkConfig.EXISTING:
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="make_firewall",
            what=f"has no effect with NETWORK_CONFIG={settings.network_config}",
            why="a network that is made has its rules, and the default network is left as it is",
            fix=f"NETWORK_CONFIG=existing, or remove {case.name('make_firewall')}",
        )
    elif OnlineCheck.SUBNETWORK in (settings.skip_checks or ()):
        yield Finding(
            field="make_firewall",
            what=f"can't stand beside SKIP_CHECKS={OnlineCheck.SUBNETWORK}",
            why="that check looks up the ranges which the rules let in",
            fix=f"remove one of {case.name('make_firewall')} and {case.name('skip_checks')}",
        )


@RULES.on(*_GPUS, "vm_type", "gke_node_pools")
def _gpus(case: Case) -> Iterator[Finding]:
    settings = case.settings
    named = len(settings.gpu_subnetworks or ())
    if not named or settings.network_config is not NetworkConfig.EXISTING:
        return
    machine = next((it for it in _machines(case) if it.gpu_network is not None), None)
    if machine is None:
        found = " and ".join(it.name for it in _machines(case)) or settings.vm_type
        yield Finding(
            field="gpu_subnetworks",
            what=f"means nothing with {found}",
            why="its GPUs have no networks of their own",
            fix="remove GPU_SUBNETWORKS, or another VM_TYPE",
        )
    elif named != machine.nics - 1:
        kinds = [f"{it.subnets} for {it.nic_type}" for it in fabrics.beside_the_first(machine)]
        yield Finding(
            field="gpu_subnetworks",
            what=f"names {named}, and {machine.name} has {machine.nics - 1} interfaces beside the"
            " first",
            why=f"each has a subnetwork of its own, in this order: {', '.join(kinds)}",
            fix=f"{machine.nics - 1} of them, such as gpu-{{1..{machine.nics - 1}}}",
        )
