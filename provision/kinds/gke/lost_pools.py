"""Node pools that the cluster has and the state does not: a run was killed, or somebody made them.

They go with their cluster. But Terraform deletes what it made for a pool, such as its placement
policy, before the cluster, and Google refuses that as long as the pool uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.google.api import Service
from provision.google.resources import CLUSTER
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase

if TYPE_CHECKING:
    from provision.context import Cloud, Context


def delete(context: Context, cloud: Cloud) -> int:
    """Delete the pools of the state's cluster that are not in the state themselves.

    Raises:
        TerraformError: One can't be deleted.
    """
    known = cloud.folder.known()
    deleted = 0
    for cluster in cloud.folder.of_type(CLUSTER.type).values():
        there = cloud.api.find(Service.CONTAINER, cluster["id"]) or {}
        for pool in there.get("nodePools", []):
            path = f"{cluster['id']}/nodePools/{pool['name']}"
            if path in known:
                continue
            what = f"The node pool {pool['name']} could not be deleted"
            with phases.during(Phase.REMOVING, cloud, what):
                cloud.api.delete(Service.CONTAINER, path)
            context.console.progress(f"Removed {path}: it is not in the state, and goes first")
            deleted += 1
    return deleted
