"""What a Create or a Destroy would do: what is made, what is lost, what is counted."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Change(enum.StrEnum):
    """What a plan does to the deployment.

    Attributes:
        NEW: Nothing is deployed yet.
        GOES_ON: An earlier Create made a part of it, and nothing has been asked for anew.
        CHANGE: Something is deployed, and changes.
        NOTHING: What exists is what the settings describe.
        DESTROY: All of it ends.
    """

    NEW = "new"
    GOES_ON = "goes_on"
    CHANGE = "change"
    NOTHING = "nothing"
    DESTROY = "destroy"


class Role(enum.StrEnum):
    """What machines are for."""

    JOBS = "jobs"
    SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A boot disk.

    Attributes:
        type: By its name in the API, such as "pd-ssd".
        size_gb: In GiB.
    """

    type: str
    size_gb: int


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal machines in one zone: a group of VMs, or a node pool.

    Attributes:
        name: The name of the managed instance group or of the node pool.
        role: What they are for.
        machine_type: The machine type.
        zone: The zone.
        at_first: How many there are at the end of Create.
        most: How many there can be.
        scales: Whether their number changes by itself.
        gpus: The GPUs of each; 0 for none, or if it is not known.
        gpu: The GPUs' name for people, such as "A100 80GB"; None in the same cases.
        gpu_part: The part of a GPU that each has, such as "1/8"; "" for whole ones.
        capacity: The way to get them, by its name in Terraform's variables, such as "spot".
        capacity_words: The same for people, such as "flex start, queued".
        reservation: The reservation that they come from; None for none.
        run_seconds: The seconds after which each of them ends by itself; None if none does.
        boot_disk: The boot disk of each.
        local_ssds: The number of local SSDs of each.
        interfaces: The number of network interfaces of each.
        compact: Whether they are placed close together.
        public_addresses: Whether each has a public IP address.
    """

    name: str
    role: Role
    machine_type: str
    zone: str
    at_first: int
    most: int
    scales: bool
    gpus: int
    gpu: str | None
    gpu_part: str
    capacity: str
    capacity_words: str
    reservation: str | None
    run_seconds: int | None
    boot_disk: Disk
    local_ssds: int
    interfaces: int
    compact: bool
    public_addresses: bool


@dataclass(frozen=True, kw_only=True)
class Network:
    """A VPC network that the machines use.

    Attributes:
        words: What it is for people, such as "RDMA".
        name: Its name, without the hash that ends it; None for one of many alike.
        made: Whether it is made; otherwise it is there.
        subnetworks: The number of its subnetworks that the machines use.
        nat: Whether it gets a Cloud NAT.
    """

    words: str
    name: str | None
    made: bool
    subnetworks: int
    nat: bool = False


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A service account that machines or pods act as.

    Attributes:
        account: Its name; an email address where it is not made here.
        bearer: Who acts as it: "VMs", "nodes" or "pods".
        made: Whether it is made.
        roles: The roles that it gets; buckets that only some of its objects concern are named.
    """

    account: str
    bearer: str
    made: bool
    roles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Storage:
    """What is mounted on the machines, or can be by pods.

    Attributes:
        words: What it is, such as "Filestore BASIC_SSD, 2,560 GB".
        path: Where it is mounted; None where pods decide.
        made: Whether it is made, and ends with the cluster.
    """

    words: str
    path: str | None
    made: bool


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What the settings describe.

    Attributes:
        name: NAME_PREFIX.
        words: What it is in a few words, such as "VM group" or "GKE 1.33".
        project: The project.
        region: The region of its networks.
        zone: The zone of machines that have no zone of their own.
        machines: All machines; those that run jobs come first.
        networks: The networks, the main one first.
        identities: The service accounts.
        storage: What is mounted.
        image: The image that VMs boot from; None where Google chooses it.
        software: What is installed and runs, in words.
        public: What can be reached from the internet, in words; empty for nothing.
    """

    name: str
    words: str
    project: str
    region: str
    zone: str
    machines: tuple[Machines, ...]
    networks: tuple[Network, ...]
    identities: tuple[Identity, ...]
    storage: tuple[Storage, ...]
    image: str | None
    software: tuple[str, ...]
    public: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota that was compared with what is needed.

    Attributes:
        metric: Its name, such as "NVIDIA_A100_GPUS".
        limit: The project's limit; None for an unlimited one.
        used: How much of it is used; None if Google does not report it.
        needed: How much this deployment needs of it at most.
    """

    metric: str
    limit: int | None
    used: int | None
    needed: int


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The online checks that passed.

    Attributes:
        made: How many checks were made.
        skipped: The checks that SKIP_CHECKS left out.
        seconds: How long all of them took.
        permissions: How many permissions were found to be held; None if that was not checked.
        apis: How many APIs were found to be enabled; None if that was not checked.
        quotas: The quotas that were compared.
    """

    made: int
    skipped: tuple[str, ...]
    seconds: float
    permissions: int | None = None
    apis: int | None = None
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Count:
    """What happens to the resources of one kind.

    Attributes:
        noun: What they are called, such as "subnetwork".
        add: How many are made, those made anew included.
        change: How many are changed in place.
        destroy: How many are deleted, those made anew included.
    """

    noun: str
    add: int
    change: int
    destroy: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Something that exists and would be replaced, removed or shrunk.

    Attributes:
        address: Its address in Terraform's root.
        noun: What it is called, such as "node pool".
        name: Its name in Google Cloud; "" if it has none.
        words: What happens, in machine terms, such as "2 VMs end".
        machines: How many machines end by it.
        data: Whether data goes with it.
    """

    address: str
    noun: str
    name: str
    words: str
    machines: int = 0
    data: bool = False


@dataclass(frozen=True, kw_only=True)
class SettingChange:
    """A setting that has another value than at the last Create.

    Attributes:
        setting: Its name.
        words: What changed, such as "a2-highgpu-2g -> a2-highgpu-1g" or "+ team=research".
    """

    setting: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Machines that run and that the plan leaves as they are.

    Attributes:
        machines: How many.
        words: What holds for them, such as "stay as they are until they are made anew".
        new: What new ones get; "" if it is the same.
        command: What makes them anew now; "" for nothing.
    """

    machines: int
    words: str
    new: str = ""
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a Create would do; and of a Destroy, what it ends.

    Attributes:
        change: What it does to the deployment.
        cluster: What the settings describe; None for a Destroy.
        counts: What happens to resources, by what they are called, in the order of importance.
        imported: How many existing resources are imported into the state.
        losses: What is lost, what holds machines first.
        settings: The settings that changed since the last Create.
        kept: Machines that run and stay as they are; None where there are none or nothing changes.
        checks: The online checks that passed; None if none was made.
    """

    change: Change
    cluster: Cluster | None
    counts: tuple[Count, ...] = ()
    imported: int = 0
    losses: tuple[Loss, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    kept: Kept | None = None
    checks: Checks | None = None
