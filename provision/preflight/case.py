"""What the checks look at, and what each of them can find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from provision.settings.choices import Network, Orchestrator

if TYPE_CHECKING:
    from provision.deployment.record import Record
    from provision.errors import Problem
    from provision.preflight.answers import Answers
    from provision.preflight.machinery import Machines
    from provision.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be made, and whom to ask about it.

    Attributes:
        settings: The checked settings.
        answers: Google's.
        machines: The machines that the settings ask for.
        cluster_id: The marker's value.
        record: What exists already; None when nothing does.
        makes_bucket: Whether the bucket for the state is still to be made.
    """

    settings: Settings
    answers: Answers
    machines: tuple[Machines, ...]
    cluster_id: str
    record: Record | None
    makes_bucket: bool

    @property
    def project(self) -> str:
        """The project's id."""
        return self.settings.project_id

    @property
    def is_gke(self) -> bool:
        """Whether it is a GKE cluster, else a group of VMs."""
        return self.settings.orchestrator_type is Orchestrator.GKE

    @property
    def makes_network(self) -> bool:
        """Whether it gets a network of its own."""
        return self.is_gke or self.settings.network_config is not Network.DEFAULT


@dataclass(frozen=True)
class Note:
    """Something that is worth knowing and stops nothing."""

    problem: Problem


@dataclass(frozen=True)
class Foreign:
    """A problem: what is there is not this deployment's to touch."""

    problem: Problem


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What the settings leave open and Google's answer decides.

    Attributes:
        image_family: The family of the VMs' image; None: another check's business.
        gke_version: The full version of the GKE cluster; None likewise.
    """

    image_family: str | None = None
    gke_version: str | None = None


Finding: TypeAlias = "Problem | Foreign | Note | Settled"
"""What a check finds: a problem stops the run, and so does something foreign."""
