"""The kinds of clusters behind one Protocol, one module each."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.location import Location
    from provision.files.archive import Archive
    from provision.google.api import GoogleApi
    from provision.settings import Settings


class Kind(enum.StrEnum):
    """What a deployment is; also the name of its Terraform root."""

    MIG = "mig"
    GKE = "gke"


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
        version: The full version of GKE that the cluster is made with; None for the channel's
            default.
    """

    image: Mapping[str, str | None] = field(default_factory=dict)
    files: Archive | None = None
    resize_requests: Mapping[str, ResizeRequest] = field(default_factory=dict)
    version: str | None = None


class Cluster(Protocol):
    """What the actions ask of a kind of cluster."""

    kind: Kind

    def variables(
        self, settings: Settings, cluster_id: str, location: Location, findings: Findings
    ) -> dict[str, Any]:
        """Make the variables of the Terraform root.

        Args:
            settings: The checked settings.
            cluster_id: The marker's value.
            location: The deployment's folder.
            findings: What the settings do not say.
        """

    def masked(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables as they may be shown.

        Args:
            variables: As `variables` has made them.
        """

    def connection(
        self, settings: Settings, outputs: Mapping[str, Any], api: GoogleApi
    ) -> dict[str, Any]:
        """How to reach what was made, from Terraform's outputs and what Google says.

        Args:
            settings: The checked settings.
            outputs: Of the Terraform root.
            api: Google.
        """
