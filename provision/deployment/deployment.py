"""One deployment: what is asked for, where its state is, and what Terraform is told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Context
    from provision.files.archive import Archive
    from provision.spec.cluster import ClusterSpec
    from provision.state.location import StateLocation

SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)


@dataclass(frozen=True, kw_only=True)
class ResizeRequestSpec:
    """VMs that are asked for at once, as flex start gives them.

    Attributes:
        count: How many.
        run_seconds: After how many seconds Google deletes each.
    """

    count: int
    run_seconds: int


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """What a run found out itself: inputs of Terraform that the settings do not contain.

    Attributes:
        image: The image that an earlier Create chose ("project", "family", "name"); {} if none
            did.
        files: The archive of the files for every VM, which has to be in the run's root folder.
        resize_requests: With flex start, by name: the open requests as they were made, and the
            new one, if any.
    """

    image: Mapping[str, str | None] = field(default_factory=dict)
    files: Archive | None = None
    resize_requests: Mapping[str, ResizeRequestSpec] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Deployment(Generic[SpecT_co]):
    """What a run is about; pure data.

    Attributes:
        kind: The kind's name, as the record keeps it.
        root: The name of its Terraform root.
        spec: What is asked for.
        cluster_id: The value of the label `aiinfra-cluster` on all that is made.
        location: Where the state is.
        inputs: What the run found out itself.
        variables: The variables of the Terraform root; an output, that nobody reads back.
        masked_variables: The same, as they may be shown.
    """

    kind: str
    root: str
    spec: SpecT_co
    cluster_id: str
    location: StateLocation
    inputs: RunInputs
    variables: Mapping[str, Any] = field(repr=False)
    masked_variables: Mapping[str, Any]


@dataclass(frozen=True)
class Applied(Generic[SpecT_co]):
    """What stands after an apply.

    Attributes:
        target: The deployment, with all that was found out on the way.
        outputs: Terraform's.
        postponed: VMs that are to be asked for once the open requests have ended.
    """

    target: Deployment[SpecT_co]
    outputs: Mapping[str, Any]
    postponed: int


def cluster_id(project_id: str, name_prefix: str) -> str:
    """The marker's value: the same at every run, different for every project and prefix."""
    return hashlib.sha256(f"{project_id}/{name_prefix}".encode()).hexdigest()[:12]


def show(context: Context, target: Deployment[SpecT]) -> Deployment[SpecT]:
    """Put a deployment into the report; gives it back."""
    context.report.tfvars = dict(target.masked_variables)
    context.report.backend = target.location.backend
    return target
