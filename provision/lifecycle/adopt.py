"""Finding resources that exist but are not in the state, such as those a killed run leaves behind.

Names are deterministic and every resource carries the marker of its deployment, so nothing is
ever lost: Create imports such a resource into the state with an import block, and Destroy removes
it. A resource of the same name without the marker belongs to somebody else and is never touched.
"""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.errors import StateError
from provision.google import owner as owners
from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.google.owner import Owner
    from provision.google.resources import Look
    from provision.terraform.plan import Creation

_AT_ONCE: Final = 8
"""The number of concurrent look-ups."""


@dataclass(frozen=True)
class Orphan:
    """A resource that exists and carries our marker, but is not in the state."""

    address: str  # its address in the Terraform root
    import_id: str  # Terraform's import ID for it
    displaces: bool  # whether the state has another object at that address


def find(
    creations: Sequence[Creation], ours: Owner, addresses: Collection[str], api: GoogleApi
) -> list[Orphan]:
    """Find the resources that a plan would create although they exist.

    `addresses`: the addresses in the state, even if the object is gone from the cloud.
    """
    known = [
        (creation, look)
        for creation in creations
        if (look := _look(creation)) and look.terms <= creation.values.keys()
    ]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda pair: _find(pair[0], pair[1], ours, api), known))
    there = [
        (creation, look, document)
        for (creation, look), document in zip(known, found, strict=True)
        if document is not None
    ]
    foreign = [
        resources.foreign(look.import_id.format_map(creation.values), owners.read(document))
        for creation, look, document in there
        if not look.is_of(document, ours)
    ]
    if foreign:
        raise StateError.of(foreign)
    return [
        Orphan(
            creation.address,
            _identity(creation, look, document),
            displaces=creation.address in addresses,
        )
        for creation, look, document in there
    ]


def import_blocks(orphans: Sequence[Orphan]) -> dict[str, Any]:
    """Terraform's import blocks for the orphans, as a JSON configuration."""
    return {"import": [{"to": orphan.address, "id": orphan.import_id} for orphan in orphans]}


def _identity(creation: Creation, look: Look, document: Mapping[str, Any]) -> str:
    if creation.type == resources.GROUP.type:
        return look.identity({**creation.values, "zone": _last(document["zone"])}, document)
    return look.identity(creation.values, document)


def _last(link: str) -> str:
    return link.rpartition("/")[2]


def _look(creation: Creation) -> Look | None:
    """How to look up a resource; None for a type that can't be left behind."""
    row = resources.BY_TYPE.get(creation.type)
    return row.lookup if row else None


def _find(creation: Creation, look: Look, ours: Owner, api: GoogleApi) -> Mapping[str, Any] | None:
    """The existing object, or its parent for a part of a resource; None if it does not exist."""
    if look.by_list:
        return _marked(creation, look, ours, api)
    document = api.find(look.service, look.at(creation.values))
    if document is None and creation.type == resources.GROUP.type:
        # A run that was killed in a move leaves the group in another zone, where its VMs bill on.
        return _marked(creation, look, ours, api)
    if document is None or not look.part:
        return document
    parts = [part["name"] for part in document.get(look.part, [])]
    return document if creation.values["name"] in parts else None


def _marked(
    creation: Creation, look: Look, ours: Owner, api: GoogleApi
) -> Mapping[str, Any] | None:
    return next(iter(api.marked(look, creation.values["project"], ours)), None)
