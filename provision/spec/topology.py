"""The topology of a cluster, from its specification: a pure function, which asks nobody."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from provision.documents.topology import (
    AddressRange,
    Door,
    Machines,
    Network,
    NetworkRole,
    Reach,
    Store,
    StoreKind,
    Topology,
)
from provision.settings.resource_paths import EVERY_ADDRESS
from provision.spec.cluster import GkeSpec, VmSpec
from provision.spec.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue import fabrics
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_OWN_MTU: Final = 8896  # the MTU of a first network that is made; modules/network has it, too


def of(spec: ClusterSpec) -> Topology:
    """The parts of a cluster, and how they hang together."""
    what, doors = _of_kind(spec)
    there = spec.existing
    named = there.network if there else None
    if there and there.project != spec.project_id:
        named = f"{there.network} of {there.project}"
    first = Network(
        role=NetworkRole.FIRST,
        mtu=_OWN_MTU if spec.makes_network else None,
        is_made=spec.makes_network,
        name=named,
        has_rules=spec.makes_firewall,
        has_nat=spec.makes_network,
        pools=tuple(pool.name for pool in spec.pools),
    )
    return Topology(
        name=spec.name_prefix,
        what=what,
        project=spec.project_id,
        region=spec.region,
        networks=(first, *_additional(spec)),
        machines=tuple(_machines(spec, pool) for pool in spec.pools),
        stores=tuple(_stores(spec)),
        doors=tuple(sorted(doors, key=lambda it: list(Reach).index(it.reach))),
        ranges=tuple(_ranges(spec)),
        kms_key=spec.kms_key,
    )


def gpu_words(accelerator: str) -> str:
    """A kind of GPU in words, from its name in the API: "nvidia-h100-mega-80gb" is "H100 80 GB"."""
    short = re.sub(r"^nvidia-|tesla-|-mega", "", accelerator)
    return re.sub(r"-?\b(\d+)gb\b", r" \1 GB", short).upper().replace("-", " ").strip()


def _of_kind(spec: ClusterSpec) -> tuple[str, Iterator[Door]]:
    """What to call it, and its doors."""
    match spec:
        case GkeSpec():
            return "GKE cluster", _doors_of_gke(spec)
        case VmSpec():
            return spec.called, _doors_of_vms(spec)
        case _:
            # A kind of another type fails in its first test, and shows nothing that is half true.
            raise NotImplementedError(type(spec))


def _additional(spec: ClusterSpec) -> Iterator[Network]:
    """The networks of the additional interfaces, equal ones beside each other as one."""
    kinds = (pool.machine.gpu_network for pool in spec.pools if pool.machine)
    of_gpus = {(kind.nic_type, kind.mtu) for kind in kinds if kind}
    for networks in (spec.gpu_networks, *spec.more_gpu_networks.values()):
        pools = tuple(pool.name for pool in spec.pools if _networks(spec, pool) == networks)
        for network, same in itertools.groupby(networks):
            is_of_gpus = (network.nic_type, network.mtu) in of_gpus
            yield Network(
                role=NetworkRole.GPUS if is_of_gpus else NetworkRole.MORE,
                count=len(list(same)),
                subnets=network.subnets,
                nic_type=network.nic_type,
                mtu=network.mtu,
                is_made=spec.makes_network,
                pools=pools,
            )


def _ranges(spec: ClusterSpec) -> Iterator[AddressRange]:
    if not spec.makes_network or spec.ranges == Ranges():
        return
    for part in spec.parts:
        yield AddressRange(use=part.use, range=str(part.range), fits=part.fits)
        if part.range != part.given:
            yield AddressRange(use="GPU networks", range=str(part.given), fits=part.fits)
    if spec.has_control_plane:
        yield AddressRange(use="Services", range=str(spec.ranges.services))


def _machines(spec: ClusterSpec, pool: Pool) -> Machines:
    gpu = gpu_words(pool.gpu_type) if pool.gpus and pool.gpu_type else None
    local_ssd_gb = pool.machine.local_ssd_gb if pool.machine else 0
    return Machines(
        name=pool.name,
        machine_type=pool.machine_type,
        zone=pool.zone,
        mode=str(pool.mode),
        first=pool.size.first,
        most=pool.size.most,
        gpus=pool.gpus,
        gpu=" ".join(filter(None, [pool.gpu_part, gpu])) or None,
        interfaces=1 + sum(network.subnets for network in _networks(spec, pool)),
        boot_disk_gb=pool.disk_size_gb,
        boot_disk_type=pool.disk_type,
        local_ssd_gb=local_ssd_gb,
        local_ssd_path=spec.local_ssd_path if local_ssd_gb else None,
        has_public_address=pool.external_ip,
        max_run_seconds=pool.max_run_seconds,
        reservation=pool.reservation,
        is_compact=pool.compact,
        is_system=pool in spec.system_pools,
    )


def _networks(spec: ClusterSpec, pool: Pool) -> tuple[fabrics.Network, ...]:
    """The networks of a pool's additional interfaces; a pool of GKE has those of its machines."""
    return pool.networks if isinstance(spec, GkeSpec) else spec.gpu_networks


def _stores(spec: ClusterSpec) -> Iterator[Store]:
    for share in spec.shares:
        yield Store(
            kind=StoreKind.FILESTORE,
            path=share.path,
            tier=str(share.tier),
            size_gb=share.size_gb,
            ends_with_cluster=True,
        )
    for mount in spec.buckets:
        yield Store(
            kind=StoreKind.BUCKET, path=mount.path, name=mount.bucket, ends_with_cluster=False
        )


def _doors_of_gke(spec: GkeSpec) -> Iterator[Door]:
    """See modules/gke-cluster: private nodes, and a control plane with a DNS endpoint."""
    yield _identity("control plane, DNS endpoint", "kubectl, as IAM allows")
    if spec.authorized_cidrs:
        ranges = ", ".join(spec.authorized_cidrs)
        is_open = not EVERY_ADDRESS.isdisjoint(spec.authorized_cidrs)
        words = f"from every address ({ranges})" if is_open else f"from {ranges} alone"
        yield Door(name="control plane, IP endpoint", reach=Reach.RANGES, words=words)
    yield _nat(f"the network {spec.existing.network}" if spec.existing else "")


def _doors_of_vms(spec: VmSpec) -> Iterator[Door]:
    """See modules/network: a new network lets in ssh from IAP, and what is inside it."""
    is_there = not spec.makes_network
    whose = f"the network {spec.existing.network}" if spec.existing else "the default network"
    if spec.group.external_ip:
        rules = f"{whose}'s firewall rules" if is_there else "firewall rules"
        let_in = "decide what comes in" if is_there else "let in ssh from IAP alone"
        words = f"on each VM; {rules} {let_in}"
        yield Door(name="public addresses", reach=Reach.INTERNET, words=words)
    if not is_there or not spec.group.external_ip:
        rule = f"if {whose} lets it in" if is_there else "port 22, as IAM allows"
        if spec.makes_firewall:
            rule = f"port 22, as IAM allows, by a firewall rule that is made in {whose}"
        yield _identity("ssh through IAP", rule)
    if spec.notebook and spec.shows_urls:
        yield _identity("notebook URL", "Google's proxy, for who may use it")
    if not is_there or not spec.group.external_ip:
        yield _nat(whose if is_there else "")


def _identity(name: str, words: str) -> Door:
    return Door(name=name, reach=Reach.IDENTITY, words=words)


def _nat(whose: str) -> Door:
    """The way out: that of a network of others, "" for one that is made."""
    words = f"one that {whose} has to have" if whose else "connections go out, none come in"
    return Door(name="Cloud NAT", reach=Reach.OUTGOING, words=words)
