"""The check of boot disks: the zone offers their type in their size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.preflight import zones

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_SIZES: Final = re.compile(r"(\d+)GB-(\d+)GB")
"""Google's format of the sizes that a disk type allows, `validDiskSize`."""


def disk(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the zone offers the type of the boot disks, in their size."""
    wanted = {(it.zone, it.disk_type, it.disk_size_gb) for it in ctx.spec.pools}
    for zone, kind, size in sorted(wanted):
        if zones.find(ctx, zone) is None:
            continue
        path = f"projects/{ctx.project}/zones/{zone}/diskTypes/{kind}"
        found = ctx.answers.find(Service.COMPUTE, path)
        if found is None:
            yield Problem(
                code=Code.NOT_OFFERED,
                setting="DISK_TYPE",
                what=f"{zone} has no disks of the type {kind}",
                why="Google does not offer that type there",
                fix="list the available types with: gcloud compute disk-types list"
                f" --zones {zone} --project {ctx.project}",
            )
            continue
        sizes = _SIZES.fullmatch(found.get("validDiskSize", ""))
        if sizes and not int(sizes[1]) <= size <= int(sizes[2]):
            yield Problem(
                code=Code.INVALID_VALUE,
                setting="DISK_SIZE_GB",
                what=f"a {kind} disk can't have {size} GB",
                why=f"Google allows {sizes[1]} to {sizes[2]} GB",
                fix=f"DISK_SIZE_GB={min(max(size, int(sizes[1])), int(sizes[2]))}",
            )
