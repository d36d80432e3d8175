"""How to reach a cluster: for people, for programs, and kept beside the state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.errors import Problem
from provision.google.owner import MARKER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied
    from provision.spec.cluster import ClusterSpec

_SHELLS: Final = 8
"""VMs whose line for a shell is printed; connection.json has all."""


def tell(
    context: Context, cloud: Cloud, made: Applied[ClusterSpec], found: Mapping[str, Any]
) -> None:
    """Say how to connect, and keep it as `connection.json`.

    Args:
        context: The run; its report gets it too.
        cloud: Has the folder.
        made: What was made.
        found: The kind's own part.
    """
    target = made.target
    dashboard = made.outputs.get("dashboard") or {}
    connection = {
        **found,
        "state": target.location.url,
        "terraform_state": f"gs://{target.location.bucket}/{target.location.state_prefix}",
        "billing_label": f"{MARKER}={target.owner.id}",
        "dashboard": dashboard.get("url"),
    }
    context.report.connection = connection
    cloud.folder.write(
        "connection.json", json.dumps(connection, indent=2) + "\n", "application/json"
    )
    context.console.result(text(connection))


def text(connection: Mapping[str, Any]) -> str:
    """The connection block for people."""
    own = _vm_lines(connection) if "vms" in connection else _cluster_lines(connection)
    lines = ["Terraform state file location:", connection["terraform_state"], *own]
    if connection["dashboard"]:
        lines += [f"Dashboard: {connection['dashboard']}"]
    lines += [f"Billing label: {connection['billing_label']}"]
    return "\n".join(lines)


def _vm_lines(connection: Mapping[str, Any]) -> list[str]:
    links = [f"{vm['name']}:{vm['notebook']}" for vm in connection["vms"] if vm["notebook"]]
    shells = [vm["ssh"] for vm in connection["vms"]]
    lines = ["Use below links to connect to the VMs:", *links] if links else []
    lines += ["Open a shell on a VM with:", *shells[:_SHELLS]]
    if len(shells) > _SHELLS:
        lines += [f"... and {len(shells) - _SHELLS} more in {connection['state']}/connection.json"]
    return lines


def _cluster_lines(connection: Mapping[str, Any]) -> list[str]:
    lines = ["Let kubectl reach the cluster with:", connection["get_credentials"]]
    if connection["jobs"]:
        lines += ["Run an example, made for this cluster, with:"]
        lines += [
            f"gcloud storage cat {url} | kubectl create --filename -"
            for url in connection["jobs"].values()
        ]
    return lines


def missing(vms: Collection[str]) -> list[Problem]:
    """A note on VMs whose notebook has no URL; none when there are none."""
    if not vms:
        return []
    return [
        Problem(
            setting="SHOW_PROXY_URL",
            what=f"there is no URL yet for the notebook on {words.listed(vms)}",
            why="Google's proxy gives it once Jupyter runs on the VM; some images have no Jupyter",
            fix="Status shows it when it is there; SHOW_PROXY_URL=no does not wait for it",
        )
    ]
