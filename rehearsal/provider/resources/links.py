"""The many ways in which Google and its users name one object.

A full link ("https://www.googleapis.com/compute/v1/projects/p/global/networks/n"), a relative one
("projects/p/global/networks/n"), shorter ones ("regions/r/subnetworks/s"), the bare name.
"""

import itertools
import re
from typing import Any

from rehearsal.provider.resource import State

_API_VERSION = re.compile(r"/compute/[a-zA-Z0-9]+/projects/")


def name(link: str) -> str:
    """The last part."""
    return link.rstrip("/").rpartition("/")[2]


def v1(link: str) -> str:
    """The link with Compute Engine's stable version, whatever version it names."""
    return _API_VERSION.sub("/compute/v1/projects/", link)


def relative(link: str) -> str:
    """The part from "projects/" on; without that part, the link as it is."""
    _, found, rest = link.partition("projects/")
    return f"projects/{rest}" if found else link


def at(kind: str, link: str, *, project: str, region: str = "", zone: str = "") -> str:
    """The relative link of an object named in any way, in a zone, a region, or (both "") global."""
    if not link:
        return ""
    if re.search(r"projects/[^/]+/", link):
        return relative(link)
    if re.match(rf"(global|(regions|zones)/[^/]+)/{kind}/", link):
        return f"projects/{project}/{link}"
    place = f"zones/{zone}" if zone else f"regions/{region}" if region else "global"
    return f"projects/{project}/{place}/{kind}/{name(link)}"


def part(link: str, after: str) -> str:
    """What follows a collection in a link: `part(".../regions/r/x/y", "regions")` is "r"."""
    found = re.search(rf"(?:^|/){after}/([^/?]+)", link)
    return found[1] if found else ""


def same_object(prior: Any, wanted: Any, _state: State) -> bool:
    """Whether two names may mean one object; a bare name matches any link that ends with it."""
    if not prior or not wanted:
        return False
    if "/" not in wanted:
        return bool(name(prior) == wanted)
    return relative(v1(prior)) == relative(v1(wanted))


def same_path(prior: Any, wanted: Any, _state: State) -> bool:
    """Whether two links mean one object; a bare name is not the same as a link."""
    return bool(prior and wanted) and relative(v1(prior)) == relative(v1(wanted))


def same_name(prior: Any, wanted: Any, _state: State) -> bool:
    """Whether the last parts are equal."""
    return bool(prior and wanted) and name(prior) == name(wanted)


def same_names(prior: Any, wanted: Any, state: State) -> bool:
    """Whether two lists have the same last parts in the same order."""
    pairs = itertools.zip_longest(prior or (), wanted or ())
    return all(same_name(one, other, state) for one, other in pairs)


def same_text(prior: Any, wanted: Any, _state: State) -> bool:
    """Whether only the case differs."""
    return bool(prior and wanted and prior.lower() == wanted.lower())
