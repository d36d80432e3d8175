"""One deployment: its specification, where its state is, and the variables for Terraform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from provision.spec import topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Context
    from provision.errors import Problem
    from provision.files.archive import Archive
    from provision.google.owner import Owner
    from provision.spec.cluster import ClusterSpec
    from provision.state.location import StateLocation

SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)


@dataclass(frozen=True, kw_only=True)
class ResizeRequestSpec:
    """The VMs that one resize request of flex start asks for.

    Attributes:
        count: The number of VMs.
        run_seconds: The seconds after which Google deletes each VM.
    """

    count: int
    run_seconds: int


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """What a run found out itself: inputs of Terraform that the settings do not contain.

    Attributes:
        files: The archive of the files for every VM, which has to be in the run's root folder.
        resize_requests: With flex start, by name: the open requests as they were made, and the
            new one, if any.
        node_runs: Queued node pools that exist and that Google says a run of nodes of, in seconds.
        pool_versions: Empty node pools with an older version than their cluster's -> the version to
            give them.
        certificates: Those that VMs trust beside the public ones, as PEM; None for none.
        shared_account: Whether pods of the name that clusters had in common have its rights too.
    """

    files: Archive | None = None
    resize_requests: Mapping[str, ResizeRequestSpec] = field(default_factory=dict)
    node_runs: Mapping[str, int] = field(default_factory=dict)
    pool_versions: Mapping[str, str] = field(default_factory=dict)
    certificates: str | None = None
    shared_account: bool = False


@dataclass(frozen=True, kw_only=True)
class Deployment(Generic[SpecT_co]):
    """The deployment that a run works on; pure data.

    Attributes:
        kind: The name of the kind of cluster, as the record has it.
        root: The name of its Terraform root.
        spec: What the settings ask for.
        owner: The deployment, as the marker on all its resources names it.
        location: Where the state is.
        inputs: What the run found out itself.
        variables: The variables for the Terraform root; nothing in this program reads them back.
        masked_variables: The variables with secrets masked, safe to print.
    """

    kind: str
    root: str
    spec: SpecT_co
    owner: Owner
    location: StateLocation
    inputs: RunInputs
    variables: Mapping[str, Any] = field(repr=False)
    masked_variables: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class OutOfDate:
    """A machine that is older than what the settings describe.

    Attributes:
        name: Its name.
        template: The path of what it was made from.
        differences: What differs, in words.
        in_place: Whether Google can change all of it while the machine runs.
        fix: What recreates it.
        instead: What makes that unnecessary; "" for nothing.
    """

    name: str
    template: str = ""
    differences: tuple[str, ...]
    in_place: bool = False
    fix: str = "Create --replace-vms"
    instead: str = ""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What machines hold that were made with older settings, or will be older after a change.

    Attributes:
        paths: The paths of what they were made of: templates and placement policies.
        accounts: The email addresses of the accounts that they act as.
    """

    paths: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()


NOTHING_HELD: Final = Held()


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a cluster that is gone made itself and has left, where no state tells of it.

    Attributes:
        what: What it is, in words.
        paths: The paths of what can be removed without asking anybody.
        kept: What is kept, as it holds data: how it goes, if it may.
    """

    what: str = ""
    paths: tuple[str, ...] = ()
    kept: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Applied(Generic[SpecT_co]):
    """The result of an apply.

    Attributes:
        target: The deployment, including what the run found out on the way.
        outputs: Terraform's outputs.
        postponed: The number of VMs to request once the open resize requests have ended.
        young: Whether an account was made, which Google may not know everywhere yet.
    """

    target: Deployment[SpecT_co]
    outputs: Mapping[str, Any]
    postponed: int
    young: bool = False


def show(context: Context, target: Deployment[SpecT]) -> Deployment[SpecT]:
    """Add a deployment's variables, place, image and topology to the report; returns it."""
    context.report.tfvars = dict(target.masked_variables)
    context.report.backend = target.location.backend
    image = target.spec.boot_image
    context.report.image = image.document if image is not None else None
    context.report.topology = topology.of(target.spec)
    return target
