"""After the apply: wait for the nodes of a GKE cluster, and apply the objects in Kubernetes."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

from provision.documents.connection import ClusterConnection, NodePoolMade
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds import connection, machines, shortage
from provision.kinds.gke import control_plane, states
from provision.kinds.gke.kubernetes import apply, facts, job_logs, jobs, ray_access, rollout, stages
from provision.lifecycle import phases
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.spec.cluster import GkeSpec

_GO_ON: Final = "everything is kept: run Create again to continue, or Destroy to remove everything"
_JOBS: Final = "jobs"
_NOT_FOUND: Final = 404


def capacity(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Wait for the nodes of pools of a fixed size; other nodes come when a job needs them.

    Terraform waits for the nodes of a new pool. This also finds nodes that an older pool lacks,
    and a cluster or a pool that has failed since.

    Raises:
        CapacityError: Google refused machines.
        StillWaiting: The nodes did not come in time; everything is kept.
        ClusterError: A pool's group can't be read, or the cluster or a pool is not in order.
    """
    spec = made.target.spec
    for group in _groups(_cluster(cloud, spec), spec):
        machines.wait(
            cloud.api,
            group,
            timeout=spec.capacity_timeout,
            progress=context.progress,
            young=made.young,
        )
    context.note(states.require(_cluster(cloud, spec), [pool.name for pool in spec.gpu_pools]))


def instances(cloud: Cloud, spec: GkeSpec) -> list[Mapping[str, Any]]:
    """What Google says of each node of the pools of a fixed size, as far as they exist."""
    found: list[Mapping[str, Any]] = []
    for group in _groups(_cluster(cloud, spec), spec):
        try:
            found += cloud.api.managed_instances(group.project, group.zone, group.name)
        except GoogleApiError as error:
            if error.code != _NOT_FOUND:
                raise
            # Its pool is being deleted, and still named.
    return found


def explain(cloud: Cloud, target: Deployment[GkeSpec]) -> None:
    """Raise the cause if Terraform failed because of missing nodes: its own message lacks it.

    Raises:
        CapacityError: Google refused machines for a pool; the pool exists and Google keeps trying.
    """
    for group in _groups(_cluster(cloud, target.spec), target.spec):
        instances = cloud.api.managed_instances(group.project, group.zone, group.name)
        running = sum(one.get("instanceStatus") == "RUNNING" for one in instances)
        shortage.check(group, instances, running, cloud.api)


def finish(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Apply all objects in the cluster; say how to connect even if that failed.

    Raises:
        ClusterError: Kubernetes refused an object, or an object did not become ready.
    """
    known = facts.read(made.target.spec, made.outputs)
    control_plane.keep(cloud.folder, known)
    try:
        known = _apply(context, cloud, made, known)
    except ClusterError as error:
        with phases.aside(context):
            connection.tell(context, cloud, made, _connection(made, {}), is_ready=False)
        raise ClusterError.of(
            [dataclasses.replace(it, fix=it.fix or _GO_ON) for it in error.problems]
        ) from error
    examples = _keep_jobs(cloud, known)
    connection.tell(context, cloud, made, _connection(made, examples), remark=_remark(made))


def _remark(made: Applied[GkeSpec]) -> str:
    """What is to be said of pools that start without nodes."""
    if any(pool.size.first for pool in made.target.spec.gpu_pools):
        return ""
    return "No GPU node is asked for, and none costs anything, until a job wants one."


def _apply(
    context: Context, cloud: Cloud, made: Applied[GkeSpec], known: ClusterFacts
) -> ClusterFacts:
    """Apply all objects; the facts, with what the cluster itself has told."""
    wanted, notes = stages.stages(known, context.environ)
    context.note(notes)
    document = _cluster(cloud, made.target.spec)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    changed = apply.apply(cluster, wanted, progress=context.progress)
    if not changed:
        context.console.progress("Kubernetes: no changes")
    context.note(rollout.wait(cluster, known, progress=context.progress))
    if not known.ray_operator:
        return known
    if not ray_access.tokens(cluster):
        wall = apply.Stage("a network policy for Ray", [ray_access.policy(cluster)])
        apply.apply(cluster, [wall], progress=context.progress)
        return known
    told = dataclasses.replace(known, ray_tokens=True)
    control_plane.keep(cloud.folder, told)
    return told


def _keep_jobs(cloud: Cloud, known: ClusterFacts) -> dict[str, str]:
    """Write the example jobs to the state folder; returns file name -> URL."""
    rendered = jobs.render(known)
    for name, text in rendered.items():
        cloud.folder.write(f"{_JOBS}/{name}", text, "application/yaml")
    return {name: f"{cloud.folder.location.url}/{_JOBS}/{name}" for name in rendered}


def _connection(
    made: Applied[GkeSpec], examples: Mapping[str, str]
) -> Callable[..., ClusterConnection]:
    """The cluster, how to connect to it, and the example jobs: file name -> URL."""
    cluster = made.outputs["cluster"]
    return functools.partial(
        ClusterConnection,
        cluster=cluster["name"],
        endpoint=f"https://{cluster['dns_endpoint']}",
        get_credentials=(
            f"gcloud container clusters get-credentials {cluster['name']}"
            f" --location {cluster['location']} --project {made.target.spec.project_id}"
            " --dns-endpoint"
        ),
        node_pools=tuple(NodePoolMade(**pool) for pool in made.outputs["node_pools"].values()),
        jobs=dict(examples),
        job_log=job_logs.command(
            made.target.spec.project_id, cluster["name"], cluster["location"], "JobSet", "NAME"
        ),
    )


def _cluster(cloud: Cloud, spec: GkeSpec) -> Mapping[str, Any]:
    """The cluster as Google's API returns it; {} if it does not exist."""
    return control_plane.find(cloud.api, spec) or {}


def _groups(cluster: Mapping[str, Any], spec: GkeSpec) -> Iterator[Group]:
    """The managed instance groups of the pools of a fixed size, as far as they exist."""
    pools = cluster.get("nodePools", [])
    urls = {pool["name"]: pool.get("instanceGroupUrls", []) for pool in pools}
    for pool in spec.gpu_pools:
        if pool.size.count is not None:
            # A pool has one zone, so one group.
            for url in urls.get(pool.name, []):
                yield Group.of(spec.project_id, pool, url.rpartition("/")[2])
