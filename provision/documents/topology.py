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
    """One VPC network, or several equal ones."""

    # whether it is that of the first interfaces, one of the GPUs' own, or one more
    role: NetworkRole
    count: int = 1  # how many equal ones there are
    subnets: int = 1  # the subnetworks in each that machines have an interface in
    # the type of the interfaces, such as "GVNIC"; None if Google's default
    nic_type: str | None = None
    # the MTU in bytes; None if it is not known, as that of a network that was there
    mtu: int | None = None
    is_made: bool = True  # whether it is made for this cluster
    # the name of one that NETWORK names, with its project if that is another one; None for one that
    # is made, and for the project's "default"
    name: str | None = None
    has_rules: bool = False  # whether firewall rules are made in it, where it is another's
    has_nat: bool = False  # whether it gets a Cloud NAT for outgoing connections
    # the groups or pools whose machines have an interface in it, by name
    pools: tuple[str, ...] = ()

    @property
    def interfaces(self) -> int:
        """The interfaces that a machine on it has there."""
        return self.count * self.subnets


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal machines in one zone: a group of VMs, or a node pool."""

    name: str  # the name of the group or pool
    machine_type: str  # the machine type
    zone: str  # the zone
    mode: str  # how they are got, as in Terraform's variables, such as "flex_start"
    first: int  # how many there are when Create is done
    most: int  # how many there can be
    gpus: int  # the GPUs of each; 0 for none, or if it is not known
    gpu: str | None  # the kind of GPU in words, such as "H100 80 GB"; None without GPUs
    interfaces: int  # the network interfaces of each
    boot_disk_gb: int  # the size of each boot disk, in GiB
    boot_disk_type: str  # the type of the boot disks, such as "pd-ssd"
    local_ssd_gb: int = 0  # the local SSDs of each together, in GB; 0 for none
    # Where each mounts them as one file system; None if it has none. A node has them for what its
    # pods keep.
    local_ssd_path: str | None = None
    has_public_address: bool = False  # whether each has a public address
    max_run_seconds: int | None = None  # after how many seconds Google deletes each; None for never
    reservation: str | None = None  # the reservation that they come from; None for none
    is_compact: bool = False  # whether they are placed close together
    is_system: bool = False  # whether they run only what the cluster itself needs


class StoreKind(enum.StrEnum):
    """What kind of shared storage machines mount."""

    BUCKET = "bucket"
    FILESTORE = "filestore"


@dataclass(frozen=True, kw_only=True)
class Store:
    """Shared storage that every machine mounts."""

    kind: StoreKind  # what kind it is
    path: str  # where machines mount it
    name: str | None = None  # the bucket; None for a share, which gets a name of its own
    tier: str | None = None  # Filestore's tier; None for a bucket
    size_gb: int | None = None  # its size in GiB; None for a bucket
    ends_with_cluster: bool  # whether Destroy deletes it


class Reach(enum.StrEnum):
    """Who can reach something, or be reached.

    `INTERNET`: Anybody can send to it, and firewall rules decide. `RANGES`: Whoever comes from the
    address ranges that the settings name. `IDENTITY`: Whoever Google's IAM lets in, from anywhere.
    `OUTGOING`: Nobody: connections only go out.
    """

    INTERNET = "internet"
    RANGES = "ranges"
    IDENTITY = "identity"
    OUTGOING = "outgoing"


@dataclass(frozen=True, kw_only=True)
class Door:
    """One way into the cluster, or out of it."""

    name: str  # what it is, such as "ssh through IAP"
    reach: Reach  # who can use it
    words: str  # what one has to know of it, in half a sentence


@dataclass(frozen=True, kw_only=True)
class AddressRange:
    """An IP range of a network that is made, as settings ask for it."""

    use: str  # what it is for: "VMs", "nodes", "GPU networks", "pods" or "Services"
    # the range, such as "10.64.0.0/22"; for GPU networks, that which theirs are cut from
    range: str
    fits: int | None = None  # for how many VMs or nodes it has room; None for Services


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A whole cluster."""

    name: str  # the prefix of all its names
    what: str  # the kind of cluster in words, such as "VM group"
    project: str  # the project
    region: str  # the region
    networks: tuple[Network, ...]  # its networks, in the order of the interfaces
    machines: tuple[Machines, ...]  # its machines; those that run jobs come first
    stores: tuple[Store, ...]  # the shared storage
    doors: tuple[Door, ...]  # the ways in and out, the most open first
    # the IP ranges of its own networks, where settings ask for other than the usual ones
    ranges: tuple[AddressRange, ...] = ()
    # the key of Cloud KMS for all that keeps data; None for Google's own keys
    kms_key: str | None = None
