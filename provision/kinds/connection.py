"""How to connect to a cluster: as text, as JSON, and in `connection.json` next to the state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.documents import plain
from provision.documents.connection import ClusterConnection, Connection, VmsConnection
from provision.errors import Problem
from provision.google.owner import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied
    from provision.spec.cluster import ClusterSpec

_SHELLS: Final = 8
"""The number of VMs whose ssh command is printed; connection.json has all of them."""


NOTEBOOK: Final = "http://localhost:8080"
"""Where a notebook is while its tunnel is open."""
_FORWARDED: Final = "-- -L 8080:localhost:8080"
"""What makes an ssh command the tunnel to a notebook (Deep Learning VM, "Use JupyterLab")."""


def tunnel(ssh: str) -> str:
    """The command that opens the tunnel to the notebook of a VM.

    Args:
        ssh: The command that opens a shell on it.
    """
    return f"{ssh} {_FORWARDED}"


def tell(
    context: Context, cloud: Cloud, made: Applied[ClusterSpec], found: Callable[..., Connection]
) -> None:
    """Say how to connect, and write it to `connection.json`.

    Args:
        context: The run; its report gets it too.
        cloud: Has the state folder.
        made: The result of the apply.
        found: Makes the document of what every kind of cluster has, as keyword arguments.
    """
    target = made.target
    dashboard = made.outputs.get("dashboard") or {}
    connection = found(
        state=target.location.url,
        terraform_state=f"gs://{target.location.bucket}/{target.location.state_prefix}",
        billing_label=f"{MARKER}={target.owner.id}",
        dashboard=dashboard.get("url"),
    )
    context.report.connection = connection
    cloud.folder.write(
        "connection.json", json.dumps(plain(connection), indent=2) + "\n", "application/json"
    )
    context.console.result(text(connection))


def text(connection: Connection) -> str:
    """The connection as text."""
    lines = ["Terraform state file location:", connection.terraform_state]
    match connection:
        case VmsConnection():
            lines += _vm_lines(connection)
        case ClusterConnection():
            lines += _cluster_lines(connection)
    if connection.dashboard:
        lines += [f"Dashboard: {connection.dashboard}"]
    lines += [f"Billing label: {connection.billing_label}"]
    return "\n".join(lines)


def _vm_lines(connection: VmsConnection) -> list[str]:
    links = [f"{vm.name}:{vm.notebook}" for vm in connection.vms if vm.notebook]
    shells = [vm.ssh for vm in connection.vms]
    lines = ["Use below links to connect to the VMs:", *links] if links else []
    lines += ["Open a shell on a VM with:", *shells[:_SHELLS]]
    if len(shells) > _SHELLS:
        lines += [f"... and {len(shells) - _SHELLS} more in {connection.state}/connection.json"]
    if any(vm.notebook_tunnel for vm in connection.vms):
        lines += [f"Add `{_FORWARDED}` to open a VM's notebook at {NOTEBOOK}"]
    return lines


def _cluster_lines(connection: ClusterConnection) -> list[str]:
    lines = ["Configure kubectl for the cluster with:", connection.get_credentials]
    if connection.jobs:
        lines += ["Run an example job for this cluster with:"]
        lines += [
            f"gcloud storage cat {url} | kubectl create --filename -"
            for url in connection.jobs.values()
        ]
    return lines


def missing(vms: Collection[str]) -> list[Problem]:
    """A note on VMs whose notebook has no URL yet; empty if there are no such VMs."""
    if not vms:
        return []
    return [
        Problem(
            code=Code.NO_URL,
            setting="SHOW_PROXY_URL",
            what=f"there is no URL yet for the notebook on {words.listed(vms)}",
            why="a VM writes it itself: it needs docker for that, and its account the permissions"
            " compute.instances.get and compute.instances.setMetadata",
            fix="use the tunnel whose command is printed; SHOW_PROXY_URL=no does not wait for it",
        )
    ]
