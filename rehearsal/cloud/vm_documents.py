"""What stands in the folder that VMs share, read as the agents on them read it.

Whoever may write to the bucket may have written anything there. A real agent takes nothing of a
document that is not as it must be, says so in its journal, and goes on with the rest.
"""

import json
import re
from typing import Any

from rehearsal.cloud.storage import objects
from rehearsal.cloud.store import Store

_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_MOST = 10_000  # VMs of a group, for an agent


def read(store: Store, bucket: str, name: str) -> dict[str, Any]:
    """The JSON object that stands there; an empty one if there is none."""
    found = objects.live(store, bucket, name)
    try:
        document = {} if found is None else json.loads(objects.content(store, found))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def size(document: dict[str, Any]) -> int | None:
    """How many VMs a group is to have, by `group.json`; None if it does not say so."""
    number = document.get("instance_count")
    return number if _is_whole(number, 1, _MOST) else None


def seats(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Who has which rank, by `roster.json`; nobody if it is spoiled, as it is then begun again."""
    found = document.get("members")
    if not isinstance(found, list):
        return []
    fits = all(is_member(it) and _is_whole(it.get("rank"), 0, _MOST) for it in found)
    return found if fits else []


def is_member(document: object) -> bool:
    """Whether something says of a VM what it says of itself."""
    return isinstance(document, dict) and _is_name(document.get("name"))


def wanted(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The jobs that are not over, by `jobs/index.json`; none if it is no index."""
    found = document.get("jobs")
    if not isinstance(found, list):
        return []
    fits = all(isinstance(it, dict) and _is_name(it.get("name")) for it in found)
    return [{"cancelled": False, **it} for it in found] if fits else []


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
