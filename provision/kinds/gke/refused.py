"""What Google refuses to node pools that lack nodes, as the groups of their VMs tell it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.google import refusals
from provision.google.api import GoogleApiError
from provision.kinds import shortage
from provision.kinds.gke import trouble
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.status import PoolNow
    from provision.errors import Problem
    from provision.google.api import GoogleApi
    from provision.state.record import Record

_TEXTS: Final = shortage.RefusalTexts(
    words="",
    after_stockout="wait: Google goes on trying, and machines may become available",
    after_quota="once it is granted, Google makes the nodes",
    end="",
)


def of(
    api: GoogleApi, record: Record, document: Mapping[str, Any], machines: Sequence[PoolNow]
) -> dict[str, list[Problem]]:
    """Name of a pool that lacks nodes -> what Google refuses.

    `document`: the cluster as Google's API returns it.
    """
    urls = {
        pool["name"]: pool.get("instanceGroupUrls", []) for pool in document.get("nodePools", [])
    }
    return {
        pool.name: [
            problem
            for url in urls.get(pool.name, [])
            for problem in _of_group(api, _group(record, pool, url))
        ]
        for pool in machines
        if trouble.missing(pool)
    }


def running(api: GoogleApi, record: Record, document: Mapping[str, Any]) -> dict[str, int | None]:
    """Name of a pool -> how many of its nodes run, by their groups; None if these may not be read.

    It is for when Kubernetes can't be asked: a node that runs need not be ready.
    """
    found: dict[str, int | None] = {}
    for pool in document.get("nodePools", []):
        try:
            found[pool["name"]] = sum(
                one.get("instanceStatus") == "RUNNING"
                for url in pool.get("instanceGroupUrls", [])
                for one in api.managed_instances(record.project_id, *_place(url))
            )
        except GoogleApiError:
            found[pool["name"]] = None
    return found


def _place(url: str) -> tuple[str, str]:
    """The zone and the name of a group."""
    return url.partition("/zones/")[2].partition("/")[0], url.rpartition("/")[2]


def _group(record: Record, pool: PoolNow, url: str) -> Group:
    zone, name = _place(url)
    return Group(
        project=record.project_id,
        zone=zone,
        name=name,
        size=(pool.there or 0) + trouble.missing(pool),
        machine_type=pool.machine_type,
        pool=pool.name,
    )


def _of_group(api: GoogleApi, group: Group) -> list[Problem]:
    """What the group of a pool is refused; nothing if these credentials may not read it."""
    try:
        members = api.managed_instances(group.project, group.zone, group.name)
    except GoogleApiError:
        return []
    running = sum(one.get("instanceStatus") == "RUNNING" for one in members)
    words = f"{running} of {group.size} {group.members} run"
    texts = dataclasses.replace(_TEXTS, words=words)
    return shortage.explain(group, refusals.of_instances(members), texts, api)
