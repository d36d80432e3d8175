"""After the apply of a GKE cluster: its nodes come, and what runs on it is brought there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.catalogue.machines import takes_gpus
from provision.errors import ClusterError
from provision.google.resources import CLUSTER
from provision.kinds import connection, machines, shortage
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import apply, facts, jobs, stages
from provision.spec.group import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.lifecycle.apply import Made
    from provision.settings import Settings

_GO_ON: Final = "everything is kept: run Create again to go on, or Destroy to remove it"
_JOBS: Final = "jobs"


def capacity(context: Context, cloud: Cloud, made: Made) -> None:
    """Wait for the nodes of pools of a fixed size; others come when a job asks for them.

    Terraform has waited for those of a new pool. What is missing of an older one is told here.

    Raises:
        CapacityError: Google refused machines.
        StillWaiting: They were not there in time; everything is kept.
        ClusterError: Google does not tell.
    """
    for group in _groups(cloud, made.target):
        machines.wait(
            cloud.api,
            group,
            timeout=context.settings.capacity_timeout,
            progress=context.progress,
        )


def explain(cloud: Cloud, target: Deployment) -> None:
    """Say why Terraform failed, if that was for want of nodes: it does not tell.

    Raises:
        CapacityError: Google refused machines for a pool; it stands, and Google goes on trying.
    """
    for group in _groups(cloud, target):
        instances = cloud.api.managed_instances(group.project, group.zone, group.name)
        running = sum(one.get("instanceStatus") == "RUNNING" for one in instances)
        shortage.check(group, instances, running, cloud.api)


def finish(context: Context, cloud: Cloud, made: Made) -> None:
    """Bring all objects into the cluster, and say how to connect, whatever failed there.

    Raises:
        ClusterError: An object is refused, or does not become ready.
    """
    settings, variables = made.target.settings, made.target.variables
    known = facts.read(settings, variables, made.outputs)
    control_plane.keep(cloud.folder, known)
    try:
        _apply(context, cloud, known)
    except ClusterError as error:
        connection.tell(context, cloud, made, connection.of_cluster(cloud, made, {}))
        raise ClusterError.of(
            [dataclasses.replace(it, fix=it.fix or _GO_ON) for it in error.problems]
        ) from error
    examples = _keep_jobs(cloud, known)
    connection.tell(context, cloud, made, connection.of_cluster(cloud, made, examples))


def _apply(context: Context, cloud: Cloud, known: ClusterFacts) -> None:
    wanted, notes = stages.stages(known, context.environ)
    context.note(notes)
    cluster = control_plane.reach(known, cloud.api, context.environ)
    changed = apply.apply(cluster, wanted, progress=context.progress)
    if not changed:
        context.console.progress("Kubernetes: no changes")


def _keep_jobs(cloud: Cloud, known: ClusterFacts) -> dict[str, str]:
    """Keep the examples beside connection.json; their URLs by name."""
    rendered = jobs.render(known)
    for name, text in rendered.items():
        cloud.folder.write(f"{_JOBS}/{name}", text, "application/yaml")
    return {name: f"{cloud.folder.location.url}/{_JOBS}/{name}" for name in rendered}


def _groups(cloud: Cloud, target: Deployment) -> Iterator[Group]:
    """The managed instance groups behind the pools of a fixed size, as far as they exist."""
    settings = target.settings
    cluster = names.CLUSTER.of(settings.name_prefix)
    path = CLUSTER.path(project=settings.project_id, location=settings.region, name=cluster)
    pools = (cloud.api.find(CLUSTER.look.service, path) or {}).get("nodePools", [])
    urls = {pool["name"]: pool.get("instanceGroupUrls", []) for pool in pools}
    for name, wanted in target.variables["node_pools"].items():
        if wanted["size"]["count"] is not None:
            # A pool has one zone, so one group.
            for url in urls.get(name, []):
                yield _group(settings, url, name, wanted)


def _group(settings: Settings, url: str, name: str, wanted: Mapping[str, Any]) -> Group:
    attached = takes_gpus(wanted["machine_type"])
    return Group(
        project=settings.project_id,
        zone=wanted["zone"],
        name=url.rpartition("/")[2],
        size=wanted["size"]["count"],
        machine_type=wanted["machine_type"],
        gpu=wanted["gpu"]["type"] if attached else None,
        gpus=wanted["gpu"]["count"] if attached else 0,
        pool=name,
        zone_setting="ZONE" if settings.gke_node_pools is None else "GKE_NODE_POOLS",
    )
