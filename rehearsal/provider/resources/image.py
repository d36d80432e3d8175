"""Images: the data source google_compute_image, and what a short image name means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Kind, Scope, Table, flatten
from rehearsal.provider.resources.rest import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

# Google's own images by what their names contain; the first that fits is where to look as well.
_PUBLIC: Mapping[str, str] = {
    "centos": "centos-cloud",
    "coreos": "coreos-cloud",
    "debian": "debian-cloud",
    "opensuse": "opensuse-cloud",
    "rhel": "rhel-cloud",
    "rocky-linux": "rocky-linux-cloud",
    "sles": "suse-cloud",
    "ubuntu": "ubuntu-os-cloud",
    "windows": "windows-cloud",
    "windows-sql": "windows-sql-cloud",
}

_LINK = re.compile(
    r"https://www\.googleapis\.com/compute/[a-z0-9]+/(projects/[^/]+/global/images/.+)"
)
# Also the end of a link to another host than Google's.
_FULL = re.compile(r"projects/[^/]+/global/images/(?:family/)?[^/]+$")
_LOCAL = re.compile(r"global/images/(?:family/)?[^/]+$")
_FAMILY = re.compile(r"family/([^/]+)$")
_OF_PROJECT = re.compile(r"([^/]+)/([^/]+)$")


@dataclass(frozen=True)
class _Guess:
    """An image or a family that a name may mean."""

    project: str
    name: str
    family: bool
    own: bool = False

    @property
    def path(self) -> str:
        kind = "family/" if self.family else ""
        return f"projects/{self.project}/global/images/{kind}{self.name}"

    @property
    def reference(self) -> str:
        """How requests name it; without the project if that was never said."""
        return links.part_from(self.path, "global") if self.own else self.path


def resolve(api: Api, project: str, image: str) -> str:
    """What a request says for an image that the configuration names in any way.

    A link or a path is taken at its word; of a short name, guesses are tried with a GET each.

    Raises:
        GoogleApiError: Google refused.
    """
    if _LINK.match(image) or _LOCAL.match(image):
        return image
    if found := _FULL.search(image):
        return found[0]
    for guess in _guesses(project, image):
        try:
            api.client("compute", "GET", guess.path)
        except GoogleApiError as error:
            if error.code != NOT_FOUND:
                raise
        else:
            return guess.reference
    raise ProviderError(f"Could not find image or family {image}")


def relative(project: str, image: str) -> str:
    """An image's link from "projects/" on, which is what the state has."""
    if found := _LINK.match(image):
        return found[1]
    return f"projects/{project}/{image}" if _LOCAL.match(image) else image


def _guesses(project: str, image: str) -> Iterator[_Guess]:
    """What a short name may mean, in the order in which the provider tries."""
    public = next((value for key, value in _PUBLIC.items() if key in image), "")
    if found := _FAMILY.match(image):
        yield from _anywhere(project, public, found[1], family=True)
    elif found := _OF_PROJECT.match(image):
        yield _Guess(found[1], found[2], family=False)
        yield _Guess(found[1], found[2], family=True)
    else:
        yield from _anywhere(project, public, image, family=False)
        yield from _anywhere(project, public, image, family=True)


def _anywhere(project: str, public: str, name: str, *, family: bool) -> Iterator[_Guess]:
    yield _Guess(project, name, family, own=True)
    if public:
        yield _Guess(public, name, family)


def _key_hash(key: Any, _: Scope) -> str:
    return str((key or {}).get("sha256", ""))


_FIELDS = Table(
    "google_compute_image",
    Field("archive_size_bytes", kind=Kind.INT64),
    Field("creation_timestamp"),
    Field("description"),
    Field("disk_size_gb", kind=Kind.INT64),
    Field("family"),
    Field("image_encryption_key_sha256", "imageEncryptionKey", flatten=_key_hash),
    Field("image_id", "id"),
    Field("label_fingerprint"),
    Field("labels"),
    Field("licenses"),
    Field("name"),
    Field("self_link"),
    Field("source_disk"),
    Field("source_disk_encryption_key_sha256", "sourceDiskEncryptionKey", flatten=_key_hash),
    Field("source_disk_id"),
    Field("source_image_id"),
    Field("status"),
    source="data",
)


class Data:
    """The data source google_compute_image."""

    def read(self, api: Api, config: State) -> State:
        """The image by its name, its family (the newest of it) or a filter."""
        project = config.get("project") or api.project
        image = _find(api, project, config)
        return {
            **flatten(_FIELDS, image, Scope(api, config, project)),
            "project": project,
            "id": f"projects/{project}/global/images/{image.get('name')}",
        }


def _find(api: Api, project: str, config: State) -> dict[str, Any]:
    images = f"projects/{project}/global/images"
    name, family = config.get("name"), config.get("family")
    if not name and not family:
        return _filtered(api, images, config)
    path = f"{images}/{name}" if name else f"{images}/family/{family}"
    try:
        return api.plain("compute", "GET", path)
    except GoogleApiError as error:
        raise ProviderError(f"error retrieving image information: {error}") from error


def _filtered(api: Api, images: str, config: State) -> dict[str, Any]:
    if not config.get("filter"):
        raise ProviderError("one of name, family or filters must be set")
    try:
        answer = api.plain("compute", "GET", images, query={"filter": config["filter"]})
    except GoogleApiError as error:
        raise ProviderError(f"error retrieving list of images: {error}") from error
    found: list[dict[str, Any]] = answer.get("items") or []
    if len(found) == 1 or (found and config.get("most_recent")):
        return max(found, key=lambda each: str(each.get("creationTimestamp", "")))
    raise ProviderError(
        "your filter has returned more than one image or no image. Please refine your filter to"
        " return exactly one image"
    )


DATA = Data()
