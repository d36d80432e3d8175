"""The public images that VMs boot from, by family.

Each family has one image here. Google has more families and changes them; these are the ones that
GPU clusters commonly start from.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rehearsal.cloud.compute.resources import Call, Resource

_VERSION = "v20260105"
_CREATED = "2026-01-05T00:00:00.000-08:00"

# Project -> GB of its images -> their families. "arm64" in a family's name says what it is for.
_FAMILIES: Mapping[str, Mapping[int, str]] = {
    "cos-cloud": {
        10: "cos-stable cos-beta cos-dev cos-arm64-stable cos-113-lts cos-117-lts cos-121-lts"
        " cos-125-lts cos-arm64-121-lts",
    },
    "debian-cloud": {10: "debian-11 debian-12 debian-12-arm64 debian-13 debian-13-arm64"},
    "deeplearning-platform-release": {
        50: "common-cpu-debian-11 common-cpu-ubuntu-2204 common-gpu-debian-11"
        " common-cu121-debian-11 common-cu123-ubuntu-2204 common-cu124-ubuntu-2204"
        " common-cu124-ubuntu-2204-py310 common-cu128-ubuntu-2204-nvidia-570"
        " common-cu128-ubuntu-2404-nvidia-570 common-cu129-ubuntu-2204-nvidia-570"
        " common-cu129-ubuntu-2204-nvidia-580 common-cu129-ubuntu-2404-nvidia-570"
        " common-cu129-ubuntu-2404-nvidia-580 pytorch-latest-gpu pytorch-2-4-cu124-ubuntu-2204"
        " pytorch-2-7-cu128-ubuntu-2204-nvidia-570 pytorch-2-7-cu128-ubuntu-2404-nvidia-570"
        " pytorch-2-9-cu129-ubuntu-2204-nvidia-580 pytorch-2-9-cu129-ubuntu-2404-nvidia-580"
        " tf-latest-gpu tf2-latest-gpu tf-2-17-cu123-ubuntu-2204-py310",
    },
    "rocky-linux-accelerator-cloud": {
        20: "rocky-linux-8-optimized-gcp-nvidia-570 rocky-linux-9-optimized-gcp-nvidia-570"
        " rocky-linux-9-optimized-gcp-nvidia-580",
    },
    "rocky-linux-cloud": {20: "rocky-linux-8 rocky-linux-8-optimized-gcp rocky-linux-9"},
    "ubuntu-os-accelerator-images": {
        10: "ubuntu-accelerator-2204-amd64-with-nvidia-550"
        " ubuntu-accelerator-2204-amd64-with-nvidia-570"
        " ubuntu-accelerator-2404-amd64-with-nvidia-570"
        " ubuntu-accelerator-2404-amd64-with-nvidia-580"
        " ubuntu-accelerator-2404-arm64-with-nvidia-570"
        " ubuntu-accelerator-2404-arm64-with-nvidia-580",
    },
    "ubuntu-os-cloud": {
        10: "ubuntu-2004-lts ubuntu-2204-lts ubuntu-2204-lts-arm64 ubuntu-2404-lts-amd64"
        " ubuntu-2404-lts-arm64 ubuntu-minimal-2204-lts ubuntu-minimal-2404-lts-amd64",
    },
}
_REFERENCE = re.compile(r"projects/([^/]+)/global/images/(family/)?([^/]+)")


@dataclass(frozen=True)
class Image:
    """A public image.

    Attributes:
        project: Whose it is.
        family: The family whose newest image it is.
        size_gb: The least size of a disk made of it.
    """

    project: str
    family: str
    size_gb: int

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.family}-{_VERSION}"

    @property
    def arm(self) -> bool:
        """Whether it is for Arm processors."""
        return "arm64" in self.family


_IMAGES = tuple(
    Image(project, family, size)
    for project, sizes in _FAMILIES.items()
    for size, families in sizes.items()
    for family in families.split()
)


def is_public(project: str) -> bool:
    """Whether a project is one of those that hold public images."""
    return project in _FAMILIES


def find(reference: str) -> Image | None:
    """The image of a resolved name ("projects/p/global/images/family/f"), or None."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    project, of_family, name = match.groups()
    for image in _IMAGES:
        if image.project == project and name == (image.family if of_family else image.name):
            return image
    return None


def _document(image: Image) -> Resource:
    name = f"projects/{image.project}/global/images/{image.name}"
    return {
        "kind": "compute#image",
        "id": str(links.FIRST_ID + zlib.crc32(name.encode())),
        "creationTimestamp": _CREATED,
        "name": image.name,
        "description": f"{image.family}, built on 2026-01-05",
        "sourceType": "RAW",
        "rawDisk": {"source": "", "containerType": "TAR"},
        "status": "READY",
        "archiveSizeBytes": str(image.size_gb * 10**8),
        "diskSizeGb": str(image.size_gb),
        "family": image.family,
        "architecture": "ARM64" if image.arm else "X86_64",
        "guestOsFeatures": [{"type": "GVNIC"}, {"type": "UEFI_COMPATIBLE"}],
        "labelFingerprint": "42WmSpB8rSM=",
        "licenses": [f"{links.ROOT}projects/{image.project}/global/licenses/{image.family}"],
        "storageLocations": ["us"],
        "selfLink": links.ROOT + name,
    }


def _required(name: str) -> Resource:
    image = find(name)
    if image is None:
        raise resources.not_found(name)
    return _document(image)


def _get(call: Call) -> Resource:
    return _required(f"projects/{call.project}/global/images/{call.parameters['image']}")


def _get_from_family(call: Call) -> Resource:
    family = call.parameters["family"]
    return _required(f"projects/{call.project}/global/images/family/{family}")


def _list(call: Call) -> Resource:
    def entries() -> Iterator[tuple[str, Resource]]:
        for image in sorted(_IMAGES, key=lambda it: it.name):
            if image.project == call.project:
                yield image.name, _document(image)

    return lists.listed(call, "image", f"projects/{call.project}/global/images", entries())


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "images.get": _get,
    "images.getFromFamily": _get_from_family,
    "images.list": _list,
}
