"""One deployment: what is asked for, where its state is, and what Terraform is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Context
    from provision.files.archive import Archive
    from provision.google.owner import Owner
    from provision.spec.cluster import ClusterSpec
    from provision.state.location import Location

SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """VMs that are asked for at once, as flex start gives them.

    Attributes:
        count: How many.
        run_seconds: After how many seconds Google deletes each.
    """

    count: int
    run_seconds: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a run has found out and the settings do not say.

    Attributes:
        image: The image that an earlier Create has settled on ("project", "family", "name"), or
            {}.
        files: The files for every VM, packed; the archive is to lie in the run's root folder.
        resize_requests: With flex start, by name: the open requests, as they were made, and any
            new one.
    """

    image: Mapping[str, str | None] = field(default_factory=dict)
    files: Archive | None = None
    resize_requests: Mapping[str, ResizeRequest] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Deployment(Generic[SpecT_co]):
    """What a run is about; pure data.

    Attributes:
        kind: The kind's name, as the record keeps it.
        root: The name of its Terraform root.
        spec: What is asked for.
        owner: The deployment, as its marker on all that is made names it.
        location: Where the state is.
        findings: What the settings do not say.
        variables: The variables of the Terraform root; an output, that nobody reads back.
        masked_variables: The same, as they may be shown.
    """

    kind: str
    root: str
    spec: SpecT_co
    owner: Owner
    location: Location
    findings: Findings
    variables: Mapping[str, Any] = field(repr=False)
    masked_variables: Mapping[str, Any]


@dataclass(frozen=True)
class Made(Generic[SpecT_co]):
    """What stands after an apply.

    Attributes:
        target: The deployment, with all that was found out on the way.
        outputs: Terraform's.
        postponed: VMs that are to be asked for once the open requests have ended.
    """

    target: Deployment[SpecT_co]
    outputs: Mapping[str, Any]
    postponed: int


def show(context: Context, target: Deployment[SpecT]) -> Deployment[SpecT]:
    """Put a deployment into the report; gives it back."""
    context.report.tfvars = dict(target.masked_variables)
    context.report.backend = target.location.backend
    return target
