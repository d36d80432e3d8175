"""Ssh: print, or run, the command that opens a shell on a VM."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.context import connect
from provision.documents import json_object
from provision.documents.connection import VmConnection, VmsConnection
from provision.errors import ClusterError, SettingsError, StateError
from provision.kinds import connection, registry
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Context

_NOT_REACHED: Final = 255


def ssh(context: Context) -> None:
    """Print the command; on a terminal where there is gcloud, run it.

    Of connection.json only what it says of ranks, names and addresses is taken, and nothing is run
    that stands there: others may be able to write to the bucket.

    Raises:
        ClusterError: ssh could not connect.
    """
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to log in to")
    told = cloud.folder.read(connection.KEPT) or {}
    vms = connection.vms(cloud.folder)
    if not vms:
        raise StateError(
            f"Nobody knows of VMs of {record.name_prefix}",
            code=Code.NO_CLUSTER,
            why="Create tells of VMs at its end; the nodes of a GKE cluster are for pods",
            fix="run Create; on GKE: kubectl exec",
        )
    wanted = context.job or "0"
    name = next((it for it, vm in vms.items() if str(vm.get("rank")) == wanted), wanted)
    if name not in vms and not context.job:
        name = next(iter(vms))  # as long as nobody has a rank
    if name not in vms:
        raise SettingsError(
            f"There is no VM {wanted}",
            code=Code.INVALID_COMMAND_LINE,
            why=f"there are {words.listed(list(vms))}",
            fix="write the name of one, or its rank, behind Ssh",
        )
    vm = vms[name]
    command = connection.ssh(name, record, is_public=bool(vm.get("external_ip")))
    if port := context.settings.ssh_forward:
        command = connection.tunnel(command, port)
    context.report.connection = VmsConnection(
        state=cloud.folder.location.url,
        terraform_state=json_object.text(told.get("terraform_state")),
        billing_label=json_object.text(told.get("billing_label")),
        dashboard=None,
        vms=(
            VmConnection(
                name=name,
                rank=json_object.whole(vm.get("rank")),
                status=json_object.text(vm.get("status")),
                internal_ip=json_object.text(vm.get("internal_ip")) or None,
                external_ip=json_object.text(vm.get("external_ip")) or None,
                ssh=command,
                notebook=None,
                notebook_tunnel=None,
            ),
        ),
        ray=None,
    )
    gcloud = shutil.which("gcloud")
    if not (context.console.opens_shells and gcloud):
        context.console.result(command)
        return
    context.console.progress(command)
    ended = subprocess.run([gcloud, *shlex.split(command)[1:]], check=False)  # noqa: S603 - made here
    # What the shell ends with is its user's; this one is of ssh itself (ssh(1), "Exit status").
    if ended.returncode == _NOT_REACHED:
        raise ClusterError(
            f"ssh did not get to {name}, or was cut off",
            code=Code.UNREACHABLE,
            why="what gcloud and ssh say stands above",
            fix="Status shows whether the VM runs; without an external address you also need"
            " roles/iap.tunnelResourceAccessor",
        )
