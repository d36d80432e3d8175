"""The image that VMs boot from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that VMs boot from.

    Attributes:
        project: The image's project.
        family: Its family; None if an image is named.
        name: Its name; None as long as Google has to be asked for it.
        resolved: Whether one certain image is known.
        supported_until: The last day of its support, such as "2028-08-04"; None if not known.
    """

    project: str
    family: str | None
    name: str | None
    resolved: bool
    supported_until: str | None
