"""The kinds of clusters behind one Protocol, one module each."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google_api import GoogleApi
    from provision.settings import Settings


class Kind(enum.StrEnum):
    """What a deployment is; also the name of its Terraform root."""

    MIG = "mig"
    GKE = "gke"


class Cluster(Protocol):
    """What the actions ask of a kind of cluster."""

    kind: Kind

    def variables(
        self, settings: Settings, cluster_id: str, image: Mapping[str, str | None]
    ) -> dict[str, Any]:
        """Make the variables of the Terraform root.

        Args:
            settings: The checked settings.
            cluster_id: The marker's value.
            image: The image that an earlier Create has settled on ("project", "family", "name"),
                or {}.
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
