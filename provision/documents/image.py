"""The image that VMs boot from, and those that Bake has made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


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


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """An image that Bake has made.

    Attributes:
        project: The project that has it, for IMAGE_PROJECT.
        name: Its name, for IMAGE_NAME.
        family: Its family, for IMAGE_FAMILY_NAME.
        made: When it was made, as Google writes it.
        state: READY, PENDING, FAILED or DELETING, by Google.
        disk_gb: The least size of a boot disk that is made of it, in GB.
        stored_gb: What is stored of it, and billed, in GB; None as long as Google does not say.
        made_from: The family of the image that it was made from.
        driver: The version of NVIDIA's driver; "" if it has none.
        installed: A digest of all that is installed.
    """

    project: str
    name: str
    family: str
    made: str
    state: str
    disk_gb: int
    stored_gb: Decimal | None
    made_from: str
    driver: str
    installed: str
