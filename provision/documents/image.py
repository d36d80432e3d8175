"""The image that VMs boot from, and those that Bake has made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that VMs boot from."""

    project: Annotated[str, "the image's project"]
    family: Annotated[str | None, "its family; None if an image is named"]
    name: Annotated[str | None, "its name; None as long as Google has to be asked for it"]
    resolved: Annotated[bool, "whether one certain image is known"]
    supported_until: Annotated[
        str | None, 'the last day of its support, such as "2028-08-04"; None if not known'
    ]


@dataclass(frozen=True, kw_only=True)
class OwnImage:
    """An image that Bake has made."""

    project: Annotated[str, "the project that has it, for IMAGE_PROJECT"]
    name: Annotated[str, "its name, for IMAGE_NAME"]
    family: Annotated[str, "its family, for IMAGE_FAMILY_NAME"]
    made: Annotated[str, "when it was made, as Google writes it"]
    state: Annotated[str, "READY, PENDING, FAILED or DELETING, by Google"]
    disk_gb: Annotated[int, "the least size of a boot disk that is made of it, in GB"]
    stored_gb: Annotated[
        Decimal | None,
        "what is stored of it, and billed, in GB; None as long as Google does not say",
    ]
    made_from: Annotated[str, "the family of the image that it was made from"]
    driver: Annotated[str, 'the version of NVIDIA\'s driver; "" if it has none']
    installed: Annotated[str, "a digest of all that is installed"]
