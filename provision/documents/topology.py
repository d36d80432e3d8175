"""What a cluster consists of, and how it hangs together: networks, machines, storage, doors."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class NetworkRole(enum.StrEnum):
    """What a network is for."""

    FIRST = "first"
    GPUS = "gpus"
    MORE = "more"


@dataclass(frozen=True, kw_only=True)
class Network:
    """One VPC network, or several equal ones.

    Attributes:
        role: Whether it is that of the first interfaces, one of the GPUs' own, or one more.
        count: How many equal ones there are.
        subnets: The subnetworks in each that machines have an interface in.
        nic_type: The type of the interfaces, such as "GVNIC"; None if Google's default.
        mtu: The MTU in bytes; None if it is not known, as that of a network that was there.
        is_made: Whether it is made for this cluster.
        name: The name of one that NETWORK names, with its project if that is another one; None for
            one that is made, and for the project's "default".
        has_rules: Whether firewall rules are made in it, where it is another's.
        has_nat: Whether it gets a Cloud NAT for outgoing connections.
        pools: The groups or pools whose machines have an interface in it, by name.
    """

    role: NetworkRole
    count: int = 1
    subnets: int = 1
    nic_type: str | None = None
    mtu: int | None = None
    is_made: bool = True
    name: str | None = None
    has_rules: bool = False
    has_nat: bool = False
    pools: tuple[str, ...] = ()

    @property
    def interfaces(self) -> int:
        """The interfaces that a machine on it has there."""
        return self.count * self.subnets


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal machines in one zone: a group of VMs, or a node pool.

    Attributes:
        name: The name of the group or pool.
        machine_type: The machine type.
        zone: The zone.
        mode: How they are got, as in Terraform's variables, such as "flex_start".
        first: How many there are when Create is done.
        most: How many there can be.
        gpus: The GPUs of each; 0 for none, or if it is not known.
        gpu: The kind of GPU in words, such as "H100 80 GB"; None without GPUs.
        interfaces: The network interfaces of each.
        boot_disk_gb: The size of each boot disk, in GiB.
        boot_disk_type: The type of the boot disks, such as "pd-ssd".
        local_ssd_gb: The local SSDs of each together, in GB; 0 for none.
        local_ssd_path: Where each mounts them as one file system; None if it has none. A node has
            them for what its pods keep.
        has_public_address: Whether each has a public address.
        max_run_seconds: After how many seconds Google deletes each; None for never.
        reservation: The reservation that they come from; None for none.
        is_compact: Whether they are placed close together.
        is_system: Whether they run only what the cluster itself needs.
    """

    name: str
    machine_type: str
    zone: str
    mode: str
    first: int
    most: int
    gpus: int
    gpu: str | None
    interfaces: int
    boot_disk_gb: int
    boot_disk_type: str
    local_ssd_gb: int = 0
    local_ssd_path: str | None = None
    has_public_address: bool = False
    max_run_seconds: int | None = None
    reservation: str | None = None
    is_compact: bool = False
    is_system: bool = False


class StoreKind(enum.StrEnum):
    """What kind of shared storage machines mount."""

    BUCKET = "bucket"
    FILESTORE = "filestore"


@dataclass(frozen=True, kw_only=True)
class Store:
    """Shared storage that every machine mounts.

    Attributes:
        kind: What kind it is.
        path: Where machines mount it.
        name: The bucket; None for a share, which gets a name of its own.
        tier: Filestore's tier; None for a bucket.
        size_gb: Its size in GiB; None for a bucket.
        ends_with_cluster: Whether Destroy deletes it.
    """

    kind: StoreKind
    path: str
    name: str | None = None
    tier: str | None = None
    size_gb: int | None = None
    ends_with_cluster: bool


class Reach(enum.StrEnum):
    """Who can reach something, or be reached.

    Attributes:
        INTERNET: Anybody can send to it, and firewall rules decide.
        RANGES: Whoever comes from the address ranges that the settings name.
        IDENTITY: Whoever Google's IAM lets in, from anywhere.
        OUTGOING: Nobody: connections only go out.
    """

    INTERNET = "internet"
    RANGES = "ranges"
    IDENTITY = "identity"
    OUTGOING = "outgoing"


@dataclass(frozen=True, kw_only=True)
class Door:
    """One way into the cluster, or out of it.

    Attributes:
        name: What it is, such as "ssh through IAP".
        reach: Who can use it.
        words: What one has to know of it, in half a sentence.
    """

    name: str
    reach: Reach
    words: str


@dataclass(frozen=True, kw_only=True)
class AddressRange:
    """An IP range of a network that is made, as settings ask for it.

    Attributes:
        use: What it is for: "VMs", "nodes", "GPU networks", "pods" or "Services".
        range: The range, such as "10.64.0.0/22"; for GPU networks, that which theirs are cut from.
        fits: For how many VMs or nodes it has room; None for Services.
    """

    use: str
    range: str
    fits: int | None = None


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A whole cluster.

    Attributes:
        name: The prefix of all its names.
        what: The kind of cluster in words, such as "VM group".
        project: The project.
        region: The region.
        networks: Its networks, in the order of the interfaces.
        machines: Its machines; those that run jobs come first.
        stores: The shared storage.
        doors: The ways in and out, the most open first.
        ranges: The IP ranges of its own networks, where settings ask for other than the usual ones.
        kms_key: The key of Cloud KMS for all that keeps data; None for Google's own keys.
    """

    name: str
    what: str
    project: str
    region: str
    networks: tuple[Network, ...]
    machines: tuple[Machines, ...]
    stores: tuple[Store, ...]
    doors: tuple[Door, ...]
    ranges: tuple[AddressRange, ...] = ()
    kms_key: str | None = None
