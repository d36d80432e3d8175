"""What a Create would do: what is made, what is lost, what is counted."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal

from provision.documents.topology import Topology


class Change(enum.StrEnum):
    """What a plan does to the deployment.

    Attributes:
        NEW: Nothing is deployed yet.
        GOES_ON: An earlier Create made a part of it, and nothing has been asked for again.
        CHANGE: Something is deployed, and changes.
        NOTHING: What exists is what the settings describe.
    """

    NEW = "new"
    GOES_ON = "goes_on"
    CHANGE = "change"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A service account that machines or pods act as.

    Attributes:
        account: Its name; an email address where it is not made here.
        bearer: Who acts as it: "VMs", "nodes" or "pods".
        made: Whether it is made.
        roles: The roles that it gets in the project.
        buckets: The buckets on which it gets a role.
    """

    account: str
    bearer: str
    made: bool
    roles: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What of a cluster its topology does not show.

    Attributes:
        words: What it is in a few words, such as "Ray cluster" or "GKE 1.35".
        place: Where its control plane or all of it is, such as "us-central1-a".
        image: The image that VMs boot from; None where Google chooses it.
        software: What is installed and runs, in words.
        idle: What machines do without work, and cost then; "" where they run on.
        nccl: What NCCL uses between VMs, with what is lost where that is less than the machines
            could; "" for machines without a GPU network, and for GKE.
        identities: The service accounts.
        limit: What would end machines automatically that now run for ever, such as
            "MAX_RUN_DURATION=12h"; "" for nothing.
    """

    words: str
    place: str
    image: str | None
    software: tuple[str, ...]
    identities: tuple[Identity, ...]
    limit: str = ""
    idle: str = ""
    nccl: str = ""


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
        add: How many are made, those replaced included.
        change: How many are changed in place.
        destroy: How many are deleted, those replaced included.
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
        words: What holds for them, such as "stay as they are until they are replaced".
        new: What new ones get; "" if it is the same.
        command: What replaces them now; "" for nothing.
    """

    machines: int
    words: str
    new: str = ""
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A zone that the cluster may be made in, and how its machines would be got there.

    Attributes:
        zone: The zone.
        way: The way of CAPACITY; None where that is not set.
        per_hour: What the cluster costs there at most, in USD per hour; None if not known.
        quotas: The quotas of GPUs there.
        reservation: The reservation that the machines would come from there; None for none.
        against: Why it is not tried; "" if it is.
        remarks: What else speaks against it, such as a bucket in another region.
    """

    zone: str
    way: str | None = None
    per_hour: Decimal | None = None
    quotas: tuple[Quota, ...] = ()
    reservation: str | None = None
    against: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a Create would do.

    Attributes:
        change: What it does to the deployment.
        topology: The cluster that the settings describe.
        contents: What else it has.
        counts: What happens to resources, by what they are called, in the order of importance.
        imported: How many existing resources are imported into the state.
        losses: What is lost, what holds machines first.
        settings: The settings that changed since the last Create.
        kept: Machines that run and stay as they are; None where there are none or nothing changes.
        checks: The online checks that passed; None if none was made.
        candidates: Where ZONE or CAPACITY leaves a choice, the zones and ways: first those that
            are tried, in their order, then the others.
    """

    change: Change
    topology: Topology
    contents: Contents
    counts: tuple[Count, ...] = ()
    imported: int = 0
    losses: tuple[Loss, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    kept: Kept | None = None
    checks: Checks | None = None
    candidates: tuple[Candidate, ...] = ()
