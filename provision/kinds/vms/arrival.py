"""After the apply: the VMs come, start up, and show their notebooks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds import connection, machines
from provision.kinds.vms import flex_start, instances, startup, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.kinds.vms.startup import Startup
    from provision.lifecycle.apply import Made


@contextlib.contextmanager
def standing(cloud: Cloud) -> Iterator[None]:
    """What Google refuses to tell of a cluster that was made is no failed check of the beginning.

    Raises:
        ClusterError: In place of Google's error.
    """
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            "Everything was made, but Google did not answer what is asked then"
            f" ({error.code}), so how to connect is not known",
            why=f"{problem.why}\nall that was made is kept, and so is its state in"
            f" {cloud.folder.location.url}",
            fix="\n".join(
                filter(None, [problem.fix, "run Create again to go on, or Destroy to remove it"])
            ),
        ) from error


def capacity(context: Context, cloud: Cloud, made: Made) -> None:
    """Wait until Google has granted what was asked for, as long as CAPACITY_TIMEOUT allows.

    Raises:
        CapacityError: It was refused.
        StillWaiting: It was not granted in time; everything is kept.
        ClusterError: Google does not tell.
    """
    group = flex_start.group(made.target)
    timeout = context.settings.capacity_timeout
    requests = made.target.findings.resize_requests
    if requests:
        waiting.for_requests(cloud.api, group, requests, timeout=timeout, progress=context.progress)
    if not made.postponed:
        machines.wait(cloud.api, group, timeout=timeout, progress=context.progress)


def finish(context: Context, cloud: Cloud, made: Made) -> None:
    """Wait for the VMs' start-up and notebooks, and say how to connect, whatever failed there.

    Raises:
        ClusterError: A start-up failed.
    """
    target = made.target
    found = _vms(context, cloud, target)
    context.note(instances.ending_soon(list(found.values())))
    reader = startup.Reader(cloud.api, _zone(target), context.clock)
    try:
        told = startup.wait(reader, found, progress=context.progress)
    except ClusterError:
        so_far = {name: vm.notebook for name, vm in found.items()}
        connection.tell(context, cloud, made, connection.of_vms(cloud, made, so_far))
        raise
    context.note(startup.notes(told))
    urls = _urls(context, cloud, target, told)
    connection.tell(context, cloud, made, connection.of_vms(cloud, made, urls))


def explain(_cloud: Cloud, _target: Deployment) -> None:
    """Raise nothing: Terraform waits for no VM, so whatever failed it has told itself."""


def _zone(target: Deployment) -> str:
    return f"projects/{target.settings.project_id}/zones/{target.settings.zone}"


def _vms(context: Context, cloud: Cloud, target: Deployment) -> dict[str, instances.Vm]:
    settings = target.settings
    found = instances.find(
        cloud.api, settings.project_id, settings.zone, target.cluster_id, context.clock
    )
    return {vm.name: vm for vm in found}


def _urls(
    context: Context, cloud: Cloud, target: Deployment, told: Mapping[str, Startup]
) -> dict[str, str]:
    """The notebooks' URLs, as far as they are wanted; a note on those that are missing."""
    if not (context.settings.show_proxy_url and context.settings.enable_notebook):
        return {}
    wanted = {name for name, it in told.items() if it.has_notebook}
    if not wanted:
        return {}
    urls = waiting.for_urls(
        lambda: {name: vm.notebook for name, vm in _vms(context, cloud, target).items()},
        wanted,
        progress=context.progress,
    )
    context.note(connection.missing(wanted - urls.keys()))
    return urls
