"""Images: the data source google_compute_image, and what a short image name means."""

import re

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import State
from rehearsal.provider.resources.rest import NOT_FOUND, scope
from rehearsal.provider.resources.shapes import Rule, Shape

_LINK = re.compile(
    r"https://www\.googleapis\.com/compute/[a-z0-9]+/(projects/[^/]+/global/images/.+)"
)
# Also the end of a link to another host than Google's.
_FULL = re.compile(r"projects/[^/]+/global/images/(?:family/)?[^/]+$")
_OF_PROJECT = re.compile(r"([^/]+)/([^/]+)$")


def resolve(api: Api, image: str) -> str:
    """What a request says for an image that the configuration names.

    A link or a path is taken at its word; of "PROJECT/NAME", an image and a family are tried with a
    GET each.

    Raises:
        GoogleApiError: Google refused.
    """
    if _LINK.match(image):
        return image
    if found := _FULL.search(image):
        return found[0]
    if found := _OF_PROJECT.fullmatch(image):
        for kind in ("", "family/"):
            path = f"projects/{found[1]}/global/images/{kind}{found[2]}"
            try:
                api.client("compute", "GET", path)
            except GoogleApiError as error:
                if error.code != NOT_FOUND:
                    raise
            else:
                return path
    raise ProviderError(f"Could not find image or family {image}")


def relative(image: str) -> str:
    """An image's link from "projects/" on, which is what the state has."""
    found = _LINK.match(image)
    return found[1] if found else image


class _Image:
    """An image by its name, or the newest of a family."""

    shape = Shape(
        "google_compute_image",
        {
            "image_encryption_key_sha256": Rule("imageEncryptionKey.sha256"),
            "image_id": Rule("id"),
            "source_disk_encryption_key_sha256": Rule("sourceDiskEncryptionKey.sha256"),
        },
        kind="data",
    )

    def read(self, api: Api, config: State) -> State:
        project = config.get("project") or api.project
        images = f"projects/{project}/global/images"
        name = config.get("name")
        path = f"{images}/{name}" if name else f"{images}/family/{config.get('family')}"
        try:
            answer = api.plain("compute", "GET", path)
        except GoogleApiError as error:
            raise ProviderError(f"error retrieving image information: {error}") from error
        state = self.shape.flatten(answer, scope(api, config))
        return {**state, "project": project, "id": f"{images}/{answer.get('name')}"}


DATA = _Image()
