"""One deployment: its specification, where its state is, and the variables for Terraform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

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
    """The VMs that one resize request of flex start asks for."""

    count: int  # the number of VMs
    run_seconds: int  # the seconds after which Google deletes each VM


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """What a run found out itself: inputs of Terraform that the settings do not contain."""

    # the archive of the files for every VM, which has to be in the run's root folder
    files: Archive | None = None
    # with flex start, by name: the open requests as they were made, and the new one, if any
    resize_requests: Mapping[str, ResizeRequestSpec] = field(default_factory=dict)
    # queued node pools that exist and that Google says a run of nodes of, in seconds
    node_runs: Mapping[str, int] = field(default_factory=dict)
    # empty node pools with an older version than their cluster's -> the version to give them
    pool_versions: Mapping[str, str] = field(default_factory=dict)
    # those that VMs trust beside the public ones, as PEM; None for none
    certificates: str | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment(Generic[SpecT_co]):
    """The deployment that a run works on; pure data."""

    kind: str  # the name of the kind of cluster, as the record has it
    root: str  # the name of its Terraform root
    spec: SpecT_co  # what the settings ask for
    owner: Owner  # the deployment, as the marker on all its resources names it
    location: StateLocation
    inputs: RunInputs  # what the run found out itself
    # the variables for the Terraform root; nothing in this program reads them back
    variables: Mapping[str, Any] = field(repr=False)
    masked_variables: Mapping[str, Any]  # the variables with secrets masked, safe to print


@dataclass(frozen=True, kw_only=True)
class OutOfDate:
    """A machine that is older than what the settings describe."""

    name: str
    template: str = ""  # the path of what it was made from
    differences: tuple[str, ...]  # what differs, in words
    in_place: bool = False  # whether Google can change all of it while the machine runs
    fix: str = "Create --replace-vms"
    instead: str = ""  # what makes that unnecessary; "" for nothing


@dataclass(frozen=True, kw_only=True)
class Held:
    """What machines hold that were made with older settings, or will be older after a change."""

    # the paths of what they were made of: templates and placement policies
    paths: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()  # the email addresses of the accounts that they act as


NOTHING_HELD: Final = Held()


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a cluster that is gone made itself and has left, where no state tells of it."""

    what: str = ""
    paths: tuple[str, ...] = ()  # the paths of what can be removed without asking anybody
    kept: tuple[Problem, ...] = ()  # what is kept, as it holds data: how it goes, if it may


@dataclass(frozen=True)
class Applied(Generic[SpecT_co]):
    """The result of an apply."""

    target: Deployment[SpecT_co]  # the deployment, including what the run found out on the way
    outputs: Mapping[str, Any]  # Terraform's outputs
    postponed: int  # the number of VMs to request once the open resize requests have ended
    young: bool = False  # whether an account was made, which Google may not know everywhere yet
    is_new: bool = False  # whether the group of VMs was made
    is_newest: bool = False  # whether it is known that no VM is of an older template


def show(context: Context, target: Deployment[SpecT]) -> Deployment[SpecT]:
    """Add a deployment's variables, place and image to the report; returns it.

    For a page, the topology too, which programs find in the plan.
    """
    context.report.tfvars = dict(target.masked_variables)
    context.report.backend = target.location.backend
    image = target.spec.boot_image
    context.report.image = image.document if image is not None else None
    if context.page is not None:
        from provision.spec import topology  # noqa: PLC0415 - few runs write one

        context.report.topology = topology.of(target.spec)
    return target
