"""Rules about a network that exists: that it is named whole, and lies where the machines are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import zones
from provision.codes import Code
from provision.settings.choices import NetworkConfig, Orchestrator
from provision.settings.networks import NetworkPath, SubnetworkPath
from provision.spec.networks import ExistingNetwork
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = ("network", "subnetwork")


def _named(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.GKE:
        return
    is_existing = settings.network_config is NetworkConfig.EXISTING
    for name in _NAMES:
        if is_existing and case.value(name) is None:
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
    outside = [it for it in settings.places.zones if zones.region_of(it) != subnetwork.region]
    if subnetwork.region and outside:
        yield Finding(
            field="subnetwork",
            what=f"is in {subnetwork.region}, the zone {outside[0]} is not",
            why="machines join subnetworks of their own region only",
            fix=f"a subnetwork in {zones.region_of(outside[0])}, or a ZONE in {subnetwork.region}",
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
    Rule(("network_config", "network", "subnetwork", "orchestrator_type"), _named),
    Rule(("network", "subnetwork", "zone"), _together),
    Rule(("project_id", "network_config", *_NAMES, "nfs_fileshare_list", "region"), _shares),
)
