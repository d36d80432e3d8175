"""What a cluster consists of, and how it hangs together: networks, machines, storage, doors."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated


class NetworkRole(enum.StrEnum):
    """What a network is for."""

    FIRST = "first"
    GPUS = "gpus"
    MORE = "more"


@dataclass(frozen=True, kw_only=True)
class Network:
    """One VPC network, or several equal ones."""

    role: Annotated[
        NetworkRole, "whether it is that of the first interfaces, one of the GPUs' own, or one more"
    ]
    count: Annotated[int, "how many equal ones there are"] = 1
    subnets: Annotated[int, "the subnetworks in each that machines have an interface in"] = 1
    nic_type: Annotated[
        str | None, 'the type of the interfaces, such as "GVNIC"; None if Google\'s default'
    ] = None
    mtu: Annotated[
        int | None, "the MTU in bytes; None if it is not known, as that of a network that was there"
    ] = None
    is_made: Annotated[bool, "whether it is made for this cluster"] = True
    name: Annotated[
        str | None,
        "the name of one that NETWORK names, with its project if that is another one; None for "
        'one that is made, and for the project\'s "default"',
    ] = None
    has_rules: Annotated[bool, "whether firewall rules are made in it, where it is another's"] = (
        False
    )
    has_nat: Annotated[bool, "whether it gets a Cloud NAT for outgoing connections"] = False
    pools: Annotated[
        tuple[str, ...], "the groups or pools whose machines have an interface in it, by name"
    ] = ()

    @property
    def interfaces(self) -> int:
        """The interfaces that a machine on it has there."""
        return self.count * self.subnets


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal machines in one zone: a group of VMs, or a node pool."""

    name: Annotated[str, "the name of the group or pool"]
    machine_type: Annotated[str, "the machine type"]
    zone: Annotated[str, "the zone"]
    mode: Annotated[str, 'how they are got, as in Terraform\'s variables, such as "flex_start"']
    first: Annotated[int, "how many there are when Create is done"]
    most: Annotated[int, "how many there can be"]
    gpus: Annotated[int, "the GPUs of each; 0 for none, or if it is not known"]
    gpu: Annotated[str | None, 'the kind of GPU in words, such as "H100 80 GB"; None without GPUs']
    interfaces: Annotated[int, "the network interfaces of each"]
    boot_disk_gb: Annotated[int, "the size of each boot disk, in GiB"]
    boot_disk_type: Annotated[str, 'the type of the boot disks, such as "pd-ssd"']
    local_ssd_gb: Annotated[int, "the local SSDs of each together, in GB; 0 for none"] = 0
    local_ssd_path: Annotated[
        str | None,
        "Where each mounts them as one file system; None if it has none. A node has them for "
        "what its pods keep.",
    ] = None
    has_public_address: Annotated[bool, "whether each has a public address"] = False
    max_run_seconds: Annotated[
        int | None, "after how many seconds Google deletes each; None for never"
    ] = None
    reservation: Annotated[str | None, "the reservation that they come from; None for none"] = None
    is_compact: Annotated[bool, "whether they are placed close together"] = False
    is_system: Annotated[bool, "whether they run only what the cluster itself needs"] = False


class StoreKind(enum.StrEnum):
    """What kind of shared storage machines mount."""

    BUCKET = "bucket"
    FILESTORE = "filestore"


@dataclass(frozen=True, kw_only=True)
class Store:
    """Shared storage that every machine mounts."""

    kind: Annotated[StoreKind, "what kind it is"]
    path: Annotated[str, "where machines mount it"]
    name: Annotated[str | None, "the bucket; None for a share, which gets a name of its own"] = None
    tier: Annotated[str | None, "Filestore's tier; None for a bucket"] = None
    size_gb: Annotated[int | None, "its size in GiB; None for a bucket"] = None
    ends_with_cluster: Annotated[bool, "whether Destroy deletes it"]


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

    name: Annotated[str, 'what it is, such as "ssh through IAP"']
    reach: Annotated[Reach, "who can use it"]
    words: Annotated[str, "what one has to know of it, in half a sentence"]


@dataclass(frozen=True, kw_only=True)
class AddressRange:
    """An IP range of a network that is made, as settings ask for it."""

    use: Annotated[str, 'what it is for: "VMs", "nodes", "GPU networks", "pods" or "Services"']
    range: Annotated[
        str, 'the range, such as "10.64.0.0/22"; for GPU networks, that which theirs are cut from'
    ]
    fits: Annotated[int | None, "for how many VMs or nodes it has room; None for Services"] = None


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A whole cluster."""

    name: Annotated[str, "the prefix of all its names"]
    what: Annotated[str, 'the kind of cluster in words, such as "VM group"']
    project: Annotated[str, "the project"]
    region: Annotated[str, "the region"]
    networks: Annotated[tuple[Network, ...], "its networks, in the order of the interfaces"]
    machines: Annotated[tuple[Machines, ...], "its machines; those that run jobs come first"]
    stores: Annotated[tuple[Store, ...], "the shared storage"]
    doors: Annotated[tuple[Door, ...], "the ways in and out, the most open first"]
    ranges: Annotated[
        tuple[AddressRange, ...],
        "the IP ranges of its own networks, where settings ask for other than the usual ones",
    ] = ()
    kms_key: Annotated[
        str | None, "the key of Cloud KMS for all that keeps data; None for Google's own keys"
    ] = None


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that VMs boot from."""

    project: Annotated[str, "the image's project"]
    family: Annotated[str | None, "its family; None if an image is named"]
    name: Annotated[str | None, "its name; None as long as Google has to be asked for it"]
    resolved: Annotated[bool, "whether one certain image is known"]
    supported_until: Annotated[
        str | None, 'the last day of its support, such as "2028-08-04"; None if not known'
    ]


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """An image that Bake has made."""

    project: Annotated[str, "the project that has it, for IMAGE_PROJECT"]
    name: Annotated[str, "its name, for IMAGE_NAME"]
    family: Annotated[str, "its family, for IMAGE_FAMILY_NAME"]
    made: Annotated[str, "when it was made, as Google writes it"]
    state: Annotated[str, "READY, PENDING, FAILED or DELETING, by Google"]
    disk_gb: Annotated[int, "the least size of a boot disk that is made of it, in GB"]
    stored_gb: Annotated[
        Decimal | None,
        "what is stored of it, and billed, in GB; None as long as Google does not say",
    ]
    made_from: Annotated[str, "the family of the image that it was made from"]
    driver: Annotated[str, 'the version of NVIDIA\'s driver; "" if it has none']
    installed: Annotated[str, "a digest of all that is installed"]
