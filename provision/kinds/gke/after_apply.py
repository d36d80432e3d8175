"""After the apply: wait for the nodes of a GKE cluster, and apply the objects in Kubernetes."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final

from provision.documents.connection import ClusterConnection, NodePoolMade
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds import connection, machines
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import facts, jobs, pods, stages
from provision.lifecycle import phases
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment
    from provision.spec.cluster import GkeSpec

_GO_ON: Final = "everything is kept: run Create again to continue, or Destroy to remove everything"
_JOBS: Final = "jobs"
_NOT_FOUND: Final = 404


def capacity(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Wait for the nodes of pools of a fixed size; other nodes come when a job needs them.

    Terraform waits for the nodes of a new pool. This also finds nodes that an older pool lacks,
    and a cluster or a pool that has failed since. Errors are those of `Kind.capacity`.
    """
    spec = made.target.spec
    for group in _groups(cloud, spec):
        machines.wait(
            cloud.api,
            group,
            timeout=spec.capacity_timeout,
            progress=context.progress,
            young=made.young,
        )
    cluster = control_plane.find(cloud.api, spec) or {}
    context.note(control_plane.require(cluster, [pool.name for pool in spec.gpu_pools]))


def instances(cloud: Cloud, spec: GkeSpec) -> list[Mapping[str, Any]]:
    """What Google says of each node of the pools of a fixed size, as far as they exist."""
    found: list[Mapping[str, Any]] = []
    for group in _groups(cloud, spec):
        try:
            found += cloud.api.managed_instances(group.project, group.zone, group.name)
        except GoogleApiError as error:
            if error.code != _NOT_FOUND:
                raise
            # Its pool is being deleted, and still named.
    return found


def explain(cloud: Cloud, target: Deployment[GkeSpec]) -> None:
    """Raise the cause if Terraform failed because of missing nodes: its own message lacks it."""
    for group in _groups(cloud, target.spec):
        instances = cloud.api.managed_instances(group.project, group.zone, group.name)
        running = sum(one.get("instanceStatus") == "RUNNING" for one in instances)
        machines.check(group, instances, running, cloud.api)


def finish(context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
    """Apply all objects in the cluster; say how to connect even if that failed."""
    known = facts.read(made.target.spec, made.outputs)
    control_plane.keep(cloud.folder, known)
    try:
        control_plane.require_accounts(cloud, made.target.spec)
        known = _apply(context, cloud, made, known)
    except ClusterError as error:
        with phases.aside(context):
            connection.tell(context, cloud, made, _connection(made, {}), is_ready=False)
        raise ClusterError.of(
            [dataclasses.replace(it, fix=it.fix or _GO_ON) for it in error.problems]
        ) from error
    rendered = jobs.render(known)
    for name, text in rendered.items():
        cloud.folder.write(f"{_JOBS}/{name}", text, "application/yaml")
    examples = {name: f"{cloud.folder.location.url}/{_JOBS}/{name}" for name in rendered}
    remark = "No GPU node is asked for, and none costs anything, until a job wants one."
    if any(pool.size.first for pool in made.target.spec.gpu_pools):
        remark = ""
    connection.tell(context, cloud, made, _connection(made, examples), remark=remark)


def _apply(
    context: Context, cloud: Cloud, made: Applied[GkeSpec], known: facts.ClusterFacts
) -> facts.ClusterFacts:
    """Apply all objects; the facts, with what the cluster itself has told."""
    wanted, notes = stages.stages(known, context.environ)
    context.note(notes)
    document = control_plane.find(cloud.api, made.target.spec)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    changed = stages.apply(cluster, wanted, progress=context.progress)
    if not changed:
        context.console.progress("Kubernetes: no changes")
    context.note(stages.wait(cluster, known, progress=context.progress))
    if not known.ray_operator:
        return known
    if not stages.ray_tokens(cluster):
        wall = stages.Stage("a network policy for Ray", [stages.ray_policy(cluster)])
        stages.apply(cluster, [wall], progress=context.progress)
        return known
    told = dataclasses.replace(known, ray_tokens=True)
    control_plane.keep(cloud.folder, told)
    return told


def _connection(
    made: Applied[GkeSpec], examples: Mapping[str, str]
) -> Callable[..., ClusterConnection]:
    """The cluster, how to connect to it, and the example jobs: file name -> URL."""
    project, cluster = made.target.spec.project_id, made.outputs["cluster"]
    name, location = cluster["name"], cluster["location"]
    return functools.partial(
        ClusterConnection,
        cluster=name,
        endpoint=f"https://{cluster['dns_endpoint']}",
        get_credentials=control_plane.get_credentials(name, location, project),
        node_pools=tuple(NodePoolMade(**pool) for pool in made.outputs["node_pools"].values()),
        jobs=dict(examples),
        job_log=pods.log_command(project, name, location, "JobSet", "NAME"),
    )


def _groups(cloud: Cloud, spec: GkeSpec) -> Iterator[Group]:
    """The managed instance groups of the pools of a fixed size, as far as they exist."""
    there = control_plane.node_pools(control_plane.find(cloud.api, spec))
    for pool in spec.gpu_pools:
        if pool.size.count is not None:
            # A pool has one zone, so one group.
            for url in there.get(pool.name, {}).get("instanceGroupUrls", []):
                yield Group.of(spec.project_id, pool, url.rpartition("/")[2])
