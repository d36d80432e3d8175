"""Names and links of Compute Engine's resources.

A resource's name is its path behind the API's version: "projects/p/zones/z/disks/d". Clients write
links in several ways (full, of another version or host, partial); what is kept and answered is
always the full link of v1, as Google does.
"""

import re
from collections.abc import Mapping

from rehearsal.cloud.wire import GoogleError

ROOT = "https://www.googleapis.com/compute/v1/"  # what makes a link of a name

FIRST_ID = 4_000_000_000_000_000_000
"""Numeric ids count from here: they have 19 digits, as Google's."""

_HOST = re.compile(r"^https?://[^/]+/(?:compute/)?(?:v1|beta|alpha)/")
_NAME = re.compile(
    r"(?:projects/(?P<project>[^/]+)/)?"
    r"(?P<place>global|zones/[^/]+|regions/[^/]+)/(?P<collection>\w+)/(?P<rest>[^/]+(?:/[^/]+)?)"
)


def last(link: str) -> str:
    """The last part of a link or name: what the resource is called."""
    return link.rpartition("/")[2]


def name_of(link: str) -> str:
    """The name that a full link stands for."""
    return link.removeprefix(ROOT)


def normal(link: str) -> str:
    """A full link in Google's own form; what is none stays as it is."""
    return _HOST.sub(ROOT, link)


def scope(name: str) -> str:
    """Where a resource is: "projects/p/global" or "projects/p/zones/z"."""
    parts = name.split("/")
    return "/".join(parts[:3] if parts[2] == "global" else parts[:4])


def place_fields(name: str) -> dict[str, str]:
    """The field that tells the zone or region of a resource of that name, if it has one."""
    kind = {"zones": "zone", "regions": "region"}.get(name.split("/")[2])
    return {kind: ROOT + scope(name)} if kind else {}


def resolve(reference: str, *, project: str, collection: str, field: str) -> str:
    """The name that a reference means; `project` is that of a link without one, or its number's."""
    match = _NAME.fullmatch(_HOST.sub("", reference))
    if match is None:
        raise invalid(field, reference, "The URL is malformed.")
    if match["collection"] != collection:
        wrong = match["collection"]
        raise invalid(field, reference, f"Unexpected resource collection '{wrong}'.")
    owner = match["project"] or project
    owner = project if owner.isdecimal() else owner
    return f"projects/{owner}/{match['place']}/{collection}/{match['rest']}"


def invalid(field: str, value: object, reason: str) -> GoogleError:
    """The refusal of a field's value; `field` is its path in the body ("name")."""
    return GoogleError(400, f"Invalid value for field 'resource.{field}': '{value}'. {reason}")


_LABEL_KEY = re.compile(r"[^\W\d_][\w-]{0,62}")
_LABEL_VALUE = re.compile(r"[\w-]{0,63}")


def check_labels(field: str, labels: Mapping[str, str]) -> None:
    """Refuse labels that break Google's rules."""
    allowed = (
        "can only contain lowercase letters, numeric characters, underscores and dashes. "
        "The {} can be at most 63 characters long. International characters are allowed."
    )
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or key != key.lower():
            raise invalid(
                field,
                "",
                f"Label key '{key}' violates format constraints. The key must start with a "
                f"lowercase character, {allowed.format('key')}",
            )
        if not _LABEL_VALUE.fullmatch(value) or value != value.lower():
            raise invalid(
                field,
                "",
                f"Label value '{value}' violates format constraints. "
                f"The value {allowed.format('value')}",
            )
