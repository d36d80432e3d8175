"""Rules about a network that exists: that it is named whole, and lies where the machines are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import gpu_networks, machines, zones
from provision.codes import Code
from provision.settings.choices import NetworkConfig, Orchestrator
from provision.settings.networks import NetworkPath, SubnetworkPath
from provision.spec.networks import ExistingNetwork
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDED: Final = ("network", "subnetwork")
_RANGES: Final = ("gke_pods_range", "gke_services_range")
_NAMES: Final = (*_NEEDED, "gpu_subnetworks")


def _named(case: Case) -> Iterator[Finding]:
    settings = case.settings
    is_existing = settings.network_config is NetworkConfig.EXISTING
    is_gke = settings.orchestrator_type is Orchestrator.GKE
    needed = _NEEDED + _RANGES if is_gke else _NEEDED
    for name in (*needed, "gpu_subnetworks") if not is_gke else needed:
        if is_existing and case.value(name) is None and name != "gpu_subnetworks":
            yield Finding(
                code=Code.MISSING_SETTING,
                field=name,
                what="is required with NETWORK_CONFIG=existing",
                why="nothing is made there, so what is to be used has to be named",
                fix=f"{case.name(name)}=<its name>, or NETWORK_CONFIG=new_network",
            )
        elif case.asked(name) and not is_existing:
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field=name,
                what=f"has no effect with NETWORK_CONFIG={settings.network_config}",
                why="only NETWORK_CONFIG=existing uses a network that is named",
                fix=f"NETWORK_CONFIG=existing, or remove {case.name(name)}",
            )


def _on_gke(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is not Orchestrator.GKE:
        return
    if settings.network_config is not NetworkConfig.EXISTING:
        if case.asked("network_config"):
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field="network_config",
                what="has no effect with ORCHESTRATOR_TYPE=gke",
                why="a GKE cluster gets the networks that its machine types need, unless it is"
                " existing",
                fix=f"remove {case.name('network_config')}, or NETWORK_CONFIG=existing",
            )
        return
    types = [pool.vm_type for pool in settings.gke_node_pools or ()] or [settings.vm_type]
    known = filter(None, map(machines.lookup, types))
    several = next((it for it in known if it.gpu_network is not None), None)
    if several is not None:
        yield Finding(
            field="network_config",
            what=f"is not for GKE nodes of {several.name}",
            why="they need networks of their own for their GPUs, which on a Shared VPC have to be"
            " in the host project; this tool does not name them to GKE",
            fix="a VM group (ORCHESTRATOR_TYPE=none) with GPU_SUBNETWORKS, machines with one"
            " network, or remove NETWORK_CONFIG",
        )


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


def _gpus(case: Case) -> Iterator[Finding]:
    settings = case.settings
    machine = machines.lookup(settings.vm_type)
    named = len(settings.gpu_subnetworks or ())
    if not named or settings.network_config is not NetworkConfig.EXISTING:
        return
    if machine is None or machine.gpu_network is None:
        yield Finding(
            field="gpu_subnetworks",
            what=f"means nothing with {settings.vm_type}",
            why="its GPUs have no networks of their own",
            fix="remove GPU_SUBNETWORKS, or another VM_TYPE",
        )
    elif named != machine.nics - 1:
        kinds = [f"{it.subnets} for {it.nic_type}" for it in gpu_networks.beside_the_first(machine)]
        yield Finding(
            field="gpu_subnetworks",
            what=f"names {named}, and {machine.name} has {machine.nics - 1} interfaces beside the"
            " first",
            why=f"each has a subnetwork of its own, in this order: {', '.join(kinds)}",
            fix=f"{machine.nics - 1} of them, such as gpu-{{1..{machine.nics - 1}}}",
        )


def _shares(case: Case) -> Iterator[Finding]:
    existing = ExistingNetwork.of(case.settings)
    if not case.settings.nfs_fileshare_list or existing is None:
        return
    if existing.project != case.settings.project_id:
        yield Finding(
            field="nfs_fileshare_list",
            what=f"can't be made on a network of {existing.project}",
            why="Filestore joins a network of its own project; on a Shared VPC it needs private"
            " service access, which this tool does not set up",
            fix="a bucket (GCS_MOUNT_LIST), or NETWORK_CONFIG=new_network",
        )


RULES: Final = (
    Rule(("network_config", *_NAMES, *_RANGES, "orchestrator_type"), _named),
    Rule(("network_config", "orchestrator_type", "vm_type", "gke_node_pools"), _on_gke),
    Rule((*_NAMES, "zone"), _together),
    Rule(("network_config", "gpu_subnetworks", "vm_type"), _gpus),
    Rule(("project_id", "network_config", *_NAMES, "nfs_fileshare_list", "region"), _shares),
)
