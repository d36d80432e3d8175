"""How to connect to a cluster: as text, as JSON, and in `connection.json` next to the state."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.codes import Code
from provision.documents import json_object, plain
from provision.documents.connection import (
    ClusterConnection,
    Connection,
    RayConnection,
    VmsConnection,
)
from provision.documents.events import Milestone
from provision.errors import Problem
from provision.google.owner import MARKER
from provision.lifecycle import ownership
from provision.screens import amounts, plan
from provision.state import objects
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied
    from provision.spec.cluster import ClusterSpec
    from provision.state.folder import StateFolder
    from provision.state.location import Place

KEPT: Final = Stored("connection.json", Writer.PROGRAM, objects.said, largest=2**24)
_NAME: Final = re.compile(r"[a-z][-a-z0-9]{0,62}")
_SHELLS: Final = 3
"""The number of VMs whose ssh command is printed; connection.json has all of them."""
NOTEBOOK: Final = "http://localhost:8080"
"""Where a notebook is while its tunnel is open (Deep Learning VM, "Use JupyterLab")."""
RAY_PORT: Final = 8265
"""Where every VM has the dashboard of its Ray cluster (ray-ports.json of modules/startup)."""
RAY_TOKEN_FILE: Final = "/run/aiinfra-ray/token"  # noqa: S105 - a path
"""Where every VM has Ray's token (aiinfra-ray.service, there)."""


def ssh(name: str, place: Place, *, is_public: bool) -> str:
    """The command that opens a shell on a VM."""
    through = "" if is_public else " --tunnel-through-iap"
    return f"gcloud compute ssh {name} --project {place.project_id} --zone {place.zone}{through}"


def vms(folder: StateFolder) -> dict[str, dict[str, Any]]:
    """What connection.json says of VMs, by name; others may be able to write it."""
    told = json_object.objects((folder.read(KEPT) or {}).get("vms"))
    named = ((json_object.text(it.get("name")), it) for it in told)
    return {name: it for name, it in named if _NAME.fullmatch(name)}


def tunnel(ssh: str, port: int = 8080) -> str:
    """The command that brings a port of a VM here, that of its notebook if none is named."""
    return f"{ssh} -- -L {port}:localhost:{port}"


def ray(ssh: str) -> RayConnection:
    """The ways to the dashboard of a Ray cluster, by the command that opens a shell on any VM."""
    return RayConnection(
        tunnel=tunnel(ssh, RAY_PORT),
        dashboard=f"http://localhost:{RAY_PORT}",
        token=f"{ssh} --command 'cat {RAY_TOKEN_FILE}'",
    )


def tell(  # noqa: PLR0913 - what is found, and how it is told
    context: Context,
    cloud: Cloud,
    made: Applied[ClusterSpec],
    found: Callable[..., Connection],
    *,
    is_ready: bool = True,
    remark: str = "",
) -> None:
    """Say how to connect, and write it to `connection.json`, the document that `found` makes."""
    target = made.target
    dashboard = made.outputs.get("dashboard") or {}
    connection = found(
        state=target.location.url,
        terraform_state=f"gs://{target.location.bucket}/{target.location.state_prefix}",
        billing_label=f"{MARKER}={target.owner.id}",
        dashboard=dashboard.get("url"),
    )
    # A wait of hours holds no lock.
    ownership.require_standing(context, cloud)
    context.report.connection = connection
    cloud.folder.write(
        KEPT.name, json.dumps(plain(connection), indent=2) + "\n", "application/json"
    )
    cost = context.report.cost
    # Once Create is done, VMs have all come, and nodes come with jobs.
    has_all = isinstance(connection, VmsConnection)
    amount = None if cost is None else cost.most if has_all else cost.now
    lines = plan.ready(
        rows(connection, context.report.log, full=context.full),
        context.console.width,
        seconds=context.seconds if is_ready else None,
        remark=remark,
        amount=amount,
    )
    context.console.show(lines, as_result=True)
    if is_ready:
        costs = f"; it costs {amounts.per_hour(amount)} from now on" if amount else ""
        fix = "" if context.destroy_after else "aiinfra Run -- COMMAND; aiinfra Destroy ends it"
        context.reached(
            Milestone.READY, f"ready after {words.duration(context.seconds)}{costs}", fix
        )


def rows(
    connection: Connection, log: str | None = None, *, full: bool = False
) -> list[tuple[str, str]]:
    """The connection for people; `full`: with dashboard, state and log, which Status has too."""
    found: list[tuple[str, str]] = []
    match connection:
        case VmsConnection():
            found += _vm_rows(connection)
        case ClusterConnection():
            found.append(("kubectl", connection.get_credentials))
            if names := list(connection.jobs):
                submit = f"gcloud storage cat {connection.jobs[names[0]]}"
                found.append(("example", f"{submit} | kubectl create --filename -"))
            if names[1:]:
                found.append(("", f"and beside it: {', '.join(names[1:])}"))
        case _:
            # A kind of another type fails in its first test, and shows nothing that is half true.
            raise NotImplementedError(type(connection))
    if full:
        more = {"dashboard": connection.dashboard, "state": connection.terraform_state, "log": log}
        found += [(what, where) for what, where in more.items() if where]
    return [*found, ("bill", f"label {connection.billing_label}")]


def _vm_rows(connection: VmsConnection) -> list[tuple[str, str]]:
    vms = connection.vms
    shown = vms if len(vms) <= _SHELLS else vms[:1]
    more = [f"and {len(vms) - 1} more: {connection.state}/connection.json"]
    found = _named("shell", [*(vm.ssh for vm in shown), *more * (len(vms) > len(shown))])
    links = [vm.notebook for vm in shown if vm.notebook]
    tunnels = [vm.notebook_tunnel for vm in vms if vm.notebook_tunnel]
    if tunnels and not links:
        links += [tunnels[0], f"and then, as long as that runs, {NOTEBOOK}"]
    found += _named("notebook", links)
    if connection.local_ssd_path:
        size = f"{connection.local_ssd_gb:,} GB"
        found += [
            ("local SSD", f"{connection.local_ssd_path} on each VM: {size}, lost with the VM")
        ]
    if connection.ray:
        then = f"and then, as long as that runs, {connection.ray.dashboard}"
        found += [*_named("ray", [connection.ray.tunnel, then]), ("token", connection.ray.token)]
    if connection.slurm:
        its = f"all (default) and {connection.slurm.partition}, each with every VM"
        found += [("slurm", f"sinfo, squeue, sbatch and srun on any VM; partitions {its}")]
    return found


def _named(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Several rows of one name, which only the first one bears."""
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def missing(vms: Collection[str]) -> Problem:
    """A note on VMs whose notebook has no URL yet."""
    return Problem(
        code=Code.NO_URL,
        setting="SHOW_PROXY_URL",
        what=f"there is no URL yet for the notebook on {words.listed(vms)}",
        why="a VM writes it itself: it needs docker for that, and its account the permissions"
        " compute.instances.get and compute.instances.setMetadata",
        fix="use the tunnel whose command is printed; SHOW_PROXY_URL=no does not wait for it",
    )
