"""The image that VMs boot from, and those that Bake has made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that VMs boot from."""

    project: str  # the image's project
    family: str | None  # its family; None if an image is named
    name: str | None  # its name; None as long as Google has to be asked for it
    resolved: bool  # whether one certain image is known
    # the last day of its support, such as "2028-08-04"; None if not known
    supported_until: str | None


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """An image that Bake has made."""

    project: str  # the project that has it, for IMAGE_PROJECT
    name: str  # its name, for IMAGE_NAME
    family: str  # its family, for IMAGE_FAMILY_NAME
    made: str  # when it was made, as Google writes it
    state: str  # READY, PENDING, FAILED or DELETING, by Google
    disk_gb: int  # the least size of a boot disk that is made of it, in GB
    # what is stored of it, and billed, in GB; None as long as Google does not say
    stored_gb: Decimal | None
    made_from: str  # the family of the image that it was made from
    driver: str  # the version of NVIDIA's driver; "" if it has none
    installed: str  # a digest of all that is installed
