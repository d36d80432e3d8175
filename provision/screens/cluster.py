"""What a cluster is made of, in rows: machines, disks, networks, accounts, when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import limits
from provision.documents.cost import PartKind
from provision.documents.topology import NetworkRole, Reach, StoreKind
from provision.screens import amounts, layout
from provision.screens.layout import Row
from provision.spec.capacity import Mode
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.documents.cost import Cost
    from provision.documents.plan import Identity, Plan
    from provision.documents.topology import AddressRange, Machines, Network, Store, Topology

_RDMA: Final = "MRDMA"

_LEFT: Final = "everything else at Destroy"


def rows(plan: Plan, cost: Cost | None) -> Iterator[Row]:
    """Everything that the settings describe, but for what it costs in all."""
    topology, contents = plan.topology, plan.contents
    group = topology.machines[0] if len(topology.machines) == 1 else None
    yield from _machines(topology, cost if group else None)
    yield from _disks(topology, cost if group else None)
    yield from _local_ssds(topology)
    for number, store in enumerate(topology.stores):
        right = _price(cost, PartKind.SHARES) if number == 0 else ""
        yield Row("storage" if number == 0 else "", _store(store), right)
    if topology.kms_key:
        _, project, _, location, *_, key = topology.kms_key.split("/")
        yield Row("key", f"{key} of {project} in {location}, for all that keeps data but buckets")
    rest = {
        "network": _networks(topology),
        "ranges": ", ".join(map(_range, topology.ranges)),
        "public": _public(topology),
        "accounts": "; ".join(map(_identity, contents.identities)),
        "image": contents.image,
        "software": ", ".join(contents.software),
        "NCCL": contents.nccl,
        "idle": contents.idle,
        "ends": _ends(plan),
    }
    yield from (Row(label, text) for label, text in rest.items() if text)


def zones(topology: Topology) -> list[str]:
    """The zones of the machines that run jobs, without duplicates."""
    own = [it.zone for it in topology.machines if not it.is_system]
    return list(dict.fromkeys(own))


def _machines(topology: Topology, cost: Cost | None) -> Iterator[Row]:
    if len(topology.machines) == 1:
        (group,) = topology.machines
        machines = f"{how_many(group)} x {group.machine_type}"
        text = "   ".join(filter(None, [machines, _gpus(group), mode(group)]))
        yield Row("machines", text, _price(cost, PartKind.MACHINES))
        return
    everywhere = zones(topology)
    cells = [
        (
            it.name,
            f"{how_many(it)} x {it.machine_type}",
            _gpus(it),
            mode(it) + (f", {it.zone}" if len(everywhere) > 1 or it.zone not in everywhere else ""),
        )
        for it in topology.machines
    ]
    for number, text in enumerate(layout.columns(cells)):
        yield Row("pools" if number == 0 else "", text)


def how_many(pool: Machines) -> str:
    """The number of a pool's machines: "2", or "0 to 16"."""
    return f"{pool.first:,}" if pool.first == pool.most else f"{pool.first:,} to {pool.most:,}"


def mode(pool: Machines) -> str:
    """How machines are got, in words."""
    close = ", close together" if pool.is_compact else ""
    return " ".join(filter(None, [Mode(pool.mode).means.words, pool.reservation])) + close


def _gpus(it: Machines) -> str:
    return f"{it.gpus} x {it.gpu}" if it.gpus and it.gpu else "no GPUs" if not it.is_system else ""


def _disks(topology: Topology, cost: Cost | None) -> Iterator[Row]:
    found: dict[str, list[str]] = {}
    for it in topology.machines:
        words = f"{it.boot_disk_gb:,} GB {it.boot_disk_type}"
        if it.local_ssd_gb and not it.local_ssd_path:
            words += f", and {it.local_ssd_gb:,} GB of local SSD"
        found.setdefault(words, []).append(it.name)
    if len(found) == 1:
        (words,) = found
        each = " each" if topology.machines[0].most > 1 or len(topology.machines) > 1 else ""
        yield Row("boot disk", words + each, _price(cost, PartKind.DISKS))
        return
    texts = [f"{words} ({', '.join(names)})" for words, names in found.items()]
    for number, text in enumerate(texts):
        yield Row("boot disk" if number == 0 else "", text)


def _local_ssds(topology: Topology) -> Iterator[Row]:
    for it in topology.machines:
        if it.local_ssd_path:
            where = f"as one disk at {it.local_ssd_path}, lost with the VM"
            each = " each" if it.most > 1 else ""
            yield Row("local SSD", f"{it.local_ssd_gb:,} GB{each}, {where}")


def _store(store: Store) -> str:
    match store.kind:
        case StoreKind.BUCKET:
            return f"bucket gs://{store.name} at {store.path}"
        case StoreKind.FILESTORE:
            size = f"{store.size_gb:,} GB" if store.size_gb else ""
            return f"makes a Filestore {store.tier} {size} at {store.path}; it ends with Destroy"


def _networks(topology: Topology) -> str:
    count = sum(it.count for it in topology.networks if it.is_made)
    words = ", ".join(map(_network, topology.networks))
    return f"makes {count}: {words}" if count else words


def _network(it: Network) -> str:
    match it.role:
        case NetworkRole.FIRST if not it.is_made:
            made = "firewall rules alone are" if it.has_rules else "nothing is"
            return f"{it.name}; {made} made in it" if it.name else "the project's default"
        case NetworkRole.FIRST:
            return "main with Cloud NAT" if it.has_nat else "main"
        case NetworkRole.GPUS if it.nic_type == _RDMA:
            return f"RDMA with {counted(it.subnets, 'subnetwork')}"
        case NetworkRole.GPUS:
            return f"{it.count} for the GPUs" if it.count > 1 else "one for the GPUs"
        case NetworkRole.MORE:
            return f"{it.count} more" if it.count > 1 else "a second gVNIC"


def _range(it: AddressRange) -> str:
    room = "" if it.fits is None else f" (room for {it.fits:,})"
    return f"{it.use} {it.range}{room}"


def _public(topology: Topology) -> str:
    """What can be reached from the internet, and how one gets in."""
    open_ = [it for it in topology.doors if it.reach in {Reach.INTERNET, Reach.RANGES}]
    ways = [it for it in topology.doors if it.reach is Reach.IDENTITY]
    if open_:
        return "; ".join(f"{it.name.removeprefix('public ')} {it.words}" for it in open_)
    known = "; ".join(f"{it.name} ({it.words})" for it in ways)
    return "no public addresses" + (f"; {known}" if known else "")


def _identity(it: Identity) -> str:
    if not it.made:
        return f"{it.bearer} act as {it.account}"
    rights = [layout.glued(len(it.roles), "role")] if it.roles else []
    if it.buckets:
        rights.append(f"roles on {layout.glued(len(it.buckets), 'bucket')}")
    return f"makes {it.account} for {it.bearer}" + (f", {' and '.join(rights)}" if rights else "")


def _ends(plan: Plan) -> str:
    own = [it for it in plan.topology.machines if not it.is_system]
    modes = {Mode(it.mode) for it in own}
    bound = any(mode.means.bound for mode in modes)
    spot = "; Google can end Spot machines at any time" if Mode.SPOT in modes else ""
    limited = [it for it in own if it.max_run_seconds is not None]
    if not limited and all(mode.means.queued for mode in modes):
        longest = amounts.span(limits.LONGEST_RUN)
        return f"each GPU node as its job asks, after {longest} at most; {_LEFT}"
    if not limited:
        if bound:
            return f"machines end with their reservation; {_LEFT}{spot}"
        limit = plan.contents.limit
        would = f" ({limit} would end its machines)" if limit else ""
        return f"at Destroy only{would}{spot}"
    each = "VM" if len(plan.topology.machines) == 1 else "GPU node"
    spans = list(dict.fromkeys(it.max_run_seconds for it in limited))
    if len(spans) == 1 and len(limited) == len(own):
        which = f"each {each} {amounts.span(spans[0] or 0)} after it came"
        # Requests say for how long, and those of kubectl are not ours: the costs count on the most.
        is_queued = any(Mode(it.mode).means.queued for it in own)
        if is_queued and (spans[0] or 0) < limits.LONGEST_RUN:
            longest = amounts.span(limits.LONGEST_RUN)
            which += f" (up to {longest} for jobs that you submit with kubectl)"
    else:
        which = ", ".join(
            f"each node of {it.name} {amounts.span(it.max_run_seconds or 0)} after it came"
            for it in limited
        )
    return f"{which}; {_LEFT}{spot}"


def _price(cost: Cost | None, kind: PartKind) -> str:
    """What the parts of a kind cost, for the right end of a row."""
    return amounts.of_parts(it for it in cost.parts if it.kind is kind) if cost else ""
