"""The protocol of kinds of cluster whose machines can boot an image that Bake has made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.documents.image import OwnImage
    from provision.state.record import Record


class Images(Protocol):
    """Makes images of a cluster of one machine, and knows those that were made."""

    @property
    def instead(self) -> Mapping[str, str]:
        """Setting -> its value for that cluster, whatever the env.list says."""

    @property
    def without(self) -> Collection[str]:
        """The settings that mean nothing to that cluster."""

    def require_name(self, name: str) -> None:
        """See that this can be the name of an image."""

    def require_free(self, cloud: Cloud, project: str, name: str) -> None:
        """See that no image has this name."""

    def make(self, context: Context, cloud: Cloud, record: Record, name: str) -> OwnImage:
        """Make an image of the only machine, which is good for nothing else afterwards.

        Raises:
            ClusterError: There is none, or it is not what it should be.
        """

    def found(self, cloud: Cloud, project: str) -> Sequence[OwnImage]:
        """All images of a project that Bake has made, by name; none if they may not be listed."""
