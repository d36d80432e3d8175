"""After the apply of a GKE cluster: its nodes come, and what runs on it is brought there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.errors import ClusterError
from provision.google.resources import CLUSTER
from provision.kinds import connection, machines, shortage
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import apply, facts, jobs, stages
from provision.spec.group import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.spec.cluster import GkeSpec

_GO_ON: Final = "everything is kept: run Create again to go on, or Destroy to remove it"
_JOBS: Final = "jobs"


def capacity(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Wait for the nodes of pools of a fixed size; others come when a job asks for them.

    Terraform has waited for those of a new pool. What is missing of an older one is told here.

    Raises:
        CapacityError: Google refused machines.
        StillWaiting: They were not there in time; everything is kept.
        ClusterError: Google does not tell.
    """
    for group in _groups(cloud, made.target.spec):
        machines.wait(
            cloud.api,
            group,
            timeout=made.target.spec.capacity_timeout,
            progress=context.progress,
        )


def explain(cloud: Cloud, target: Deployment[GkeSpec]) -> None:
    """Say why Terraform failed, if that was for want of nodes: it does not tell.

    Raises:
        CapacityError: Google refused machines for a pool; it stands, and Google goes on trying.
    """
    for group in _groups(cloud, target.spec):
        instances = cloud.api.managed_instances(group.project, group.zone, group.name)
        running = sum(one.get("instanceStatus") == "RUNNING" for one in instances)
        shortage.check(group, instances, running, cloud.api)


def finish(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Bring all objects into the cluster, and say how to connect, whatever failed there.

    Raises:
        ClusterError: An object is refused, or does not become ready.
    """
    known = facts.read(made.target.spec, made.outputs)
    control_plane.keep(cloud.folder, known)
    try:
        _apply(context, cloud, known)
    except ClusterError as error:
        connection.tell(context, cloud, made, _connection(made, {}))
        raise ClusterError.of(
            [dataclasses.replace(it, fix=it.fix or _GO_ON) for it in error.problems]
        ) from error
    examples = _keep_jobs(cloud, known)
    connection.tell(context, cloud, made, _connection(made, examples))


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


def _connection(made: Applied[GkeSpec], examples: Mapping[str, str]) -> dict[str, Any]:
    """The cluster, how to reach it, and the URLs of the examples by file name."""
    cluster = made.outputs["cluster"]
    return {
        "cluster": cluster["name"],
        "endpoint": f"https://{cluster['dns_endpoint']}",
        "get_credentials": (
            f"gcloud container clusters get-credentials {cluster['name']}"
            f" --location {cluster['location']} --project {made.target.spec.project_id}"
            " --dns-endpoint"
        ),
        "node_pools": list(made.outputs["node_pools"].values()),
        "jobs": dict(examples),
    }


def _groups(cloud: Cloud, spec: GkeSpec) -> Iterator[Group]:
    """The managed instance groups behind the pools of a fixed size, as far as they exist."""
    cluster = names.CLUSTER.of(spec.name_prefix)
    path = CLUSTER.path(project=spec.project_id, location=spec.region, name=cluster)
    pools = (cloud.api.find(CLUSTER.look.service, path) or {}).get("nodePools", [])
    urls = {pool["name"]: pool.get("instanceGroupUrls", []) for pool in pools}
    for pool in spec.gpu_pools:
        if pool.size.count is not None:
            # A pool has one zone, so one group.
            for url in urls.get(pool.name, []):
                yield Group.of(spec.project_id, pool, url.rpartition("/")[2])
