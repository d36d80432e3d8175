"""What a Create would do: what is made, what is lost, what is counted."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from provision.documents.topology import Topology


class Change(enum.StrEnum):
    """What a plan does to the deployment.

    `NEW`: Nothing is deployed yet. `GOES_ON`: An earlier Create made a part of it, and nothing has
    been asked for again. `CHANGE`: Something is deployed, and changes. `NOTHING`: What exists is
    what the settings describe.
    """

    NEW = "new"
    GOES_ON = "goes_on"
    CHANGE = "change"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A service account that machines or pods act as."""

    account: Annotated[str, "its name; an email address where it is not made here"]
    bearer: Annotated[str, 'who acts as it: "VMs", "nodes" or "pods"']
    made: Annotated[bool, "whether it is made"]
    roles: Annotated[tuple[str, ...], "the roles that it gets in the project"] = ()
    buckets: Annotated[tuple[str, ...], "the buckets on which it gets a role"] = ()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What of a cluster its topology does not show."""

    words: Annotated[str, 'what it is in a few words, such as "Ray cluster" or "GKE 1.35"']
    place: Annotated[str, 'where its control plane or all of it is, such as "us-central1-a"']
    image: Annotated[str | None, "the image that VMs boot from; None where Google chooses it"]
    software: Annotated[tuple[str, ...], "what is installed and runs, in words"]
    identities: Annotated[tuple[Identity, ...], "the service accounts"]
    limit: Annotated[
        str,
        "what would end machines automatically that now run for ever, such as "
        '"MAX_RUN_DURATION=12h"; "" for nothing',
    ] = ""
    idle: Annotated[str, 'what machines do without work, and cost then; "" where they run on'] = ""
    nccl: Annotated[
        str,
        "what NCCL uses between VMs, with what is lost where that is less than the machines "
        'could; "" for machines without a GPU network, and for GKE',
    ] = ""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota that was compared with what is needed."""

    metric: Annotated[str, 'its name, such as "NVIDIA_A100_GPUS"']
    limit: Annotated[int | None, "the project's limit; None for an unlimited one"]
    used: Annotated[int | None, "how much of it is used; None if Google does not report it"]
    needed: Annotated[int, "how much this deployment needs of it at most"]


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The online checks that passed."""

    made: Annotated[int, "how many checks were made"]
    skipped: Annotated[tuple[str, ...], "the checks that SKIP_CHECKS left out"]
    seconds: Annotated[float, "how long all of them took"]
    permissions: Annotated[
        int | None, "how many permissions were found to be held; None if that was not checked"
    ] = None
    apis: Annotated[
        int | None, "how many APIs were found to be enabled; None if that was not checked"
    ] = None
    quotas: Annotated[tuple[Quota, ...], "the quotas that were compared"] = ()


@dataclass(frozen=True, kw_only=True)
class Count:
    """What happens to the resources of one kind."""

    noun: Annotated[str, 'what they are called, such as "subnetwork"']
    add: Annotated[int, "how many are made, those replaced included"]
    change: Annotated[int, "how many are changed in place"]
    destroy: Annotated[int, "how many are deleted, those replaced included"]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Something that exists and would be replaced, removed or shrunk."""

    address: Annotated[str, "its address in Terraform's root"]
    noun: Annotated[str, 'what it is called, such as "node pool"']
    name: Annotated[str, 'its name in Google Cloud; "" if it has none']
    words: Annotated[str, 'what happens, in machine terms, such as "2 VMs end"']
    machines: Annotated[int, "how many machines end by it"] = 0
    data: Annotated[bool, "whether data goes with it"] = False


@dataclass(frozen=True, kw_only=True)
class SettingChange:
    """A setting that has another value than at the last Create."""

    setting: Annotated[str, "its name"]
    words: Annotated[
        str, 'what changed, such as "a2-highgpu-2g -> a2-highgpu-1g" or "+ team=research"'
    ]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Something that can be reached, or that may be done, after this Create and not before."""

    setting: Annotated[str, "the setting that opens it"]
    words: Annotated[str, 'what opens, such as "VMs get public addresses: ..."']
    outside: Annotated[
        bool, "whether others can reach the machines by it; else what machines may do"
    ]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Machines that run and that the plan leaves as they are."""

    machines: Annotated[int, "how many"]
    words: Annotated[str, 'what holds for them, such as "stay as they are until they are replaced"']
    new: Annotated[str, 'what new ones get; "" if it is the same'] = ""
    command: Annotated[str, 'what replaces them now; "" for nothing'] = ""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A zone that the cluster may be made in, and how its machines would be got there."""

    zone: Annotated[str, "the zone"]
    way: Annotated[str | None, "the way of CAPACITY; None where that is not set"] = None
    per_hour: Annotated[
        Decimal | None, "what the cluster costs there at most, in USD per hour; None if not known"
    ] = None
    quotas: Annotated[tuple[Quota, ...], "the quotas of GPUs there"] = ()
    reservation: Annotated[
        str | None, "the reservation that the machines would come from there; None for none"
    ] = None
    obtainability: Annotated[
        float | None, "how likely Google says that it has all machines, 0 to 1; None if it does not"
    ] = None
    uptime_seconds: Annotated[
        int | None, "how long it says that most Spot VMs run there; None if it does not"
    ] = None
    against: Annotated[str, 'why it is not tried; "" if it is'] = ""
    remarks: Annotated[
        tuple[str, ...], "what else speaks against it, such as a bucket in another region"
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a Create would do."""

    change: Annotated[Change, "what it does to the deployment"]
    topology: Annotated[Topology, "the cluster that the settings describe"]
    contents: Annotated[Contents, "what else it has"]
    counts: Annotated[
        tuple[Count, ...],
        "what happens to resources, by what they are called, in the order of importance",
    ] = ()
    imported: Annotated[int, "how many existing resources are imported into the state"] = 0
    losses: Annotated[tuple[Loss, ...], "what is lost, what holds machines first"] = ()
    settings: Annotated[
        tuple[SettingChange, ...], "the settings that changed since the last Create"
    ] = ()
    opens: Annotated[tuple[Opening, ...], "what it opens beyond the last Create"] = ()
    writers: Annotated[
        tuple[str, ...],
        "who beside the caller may change the state, by the roles of its bucket, such as "
        '"editors of my-project"; empty where there is no bucket yet, or where nobody may know',
    ] = ()
    newer_tool: Annotated[
        str | None,
        "the version of this program that made the cluster, where that is newer than this one; "
        "None else: what it made otherwise, this one would change back",
    ] = None
    kept: Annotated[
        Kept | None,
        "machines that run and stay as they are; None where there are none or nothing changes",
    ] = None
    again: Annotated[
        int, "how many VMs come in place of those that have ended, or that somebody deleted"
    ] = 0
    checks: Annotated[Checks | None, "the online checks that passed; None if none was made"] = None
    candidates: Annotated[
        tuple[Candidate, ...],
        "where ZONE or CAPACITY leaves a choice, the zones and ways: first those that are "
        "tried, in their order, then the others",
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The number of resources that all plans of a run would create, change and delete."""

    add: Annotated[int, "how many are created, those replaced included"] = 0
    change: Annotated[int, "how many are changed in place"] = 0
    destroy: Annotated[
        int,
        "how many are deleted, those replaced included; for a Destroy also what it finds "
        "outside of the state",
    ] = 0

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            add=self.add + other.add,
            change=self.change + other.change,
            destroy=self.destroy + other.destroy,
        )

    def __bool__(self) -> bool:
        return bool(self.add or self.change or self.destroy)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Where Terraform keeps its state."""

    bucket: Annotated[str, "the bucket"]
    prefix: Annotated[str, "the prefix of the state's name in it"]
