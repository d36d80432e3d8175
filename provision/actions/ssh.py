"""Ssh: print, or run, the command that opens a shell on a VM, or where a job runs.

With `--config` it says the way to all VMs as OpenSSH's own configuration has it, for editors, rsync
and whatever else runs ssh.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.actions import jobs as jobs_action
from provision.catalogue import names
from provision.codes import Code
from provision.context import connect
from provision.documents import json_object
from provision.documents.connection import VmConnection, VmsConnection
from provision.documents.job import JobState
from provision.errors import ClusterError, SettingsError, StateError
from provision.kinds import connection, registry
from provision.lifecycle import ownership
from provision.spec import job as naming
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from provision.context import Cloud, Context
    from provision.state.record import Record

_NOT_REACHED: Final = 255
_RUNS: Final = frozenset({JobState.RUNNING, JobState.STOPPING})
_USER: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,63})@\S+")
"""The last word of gcloud's --dry-run."""
_MINE: Final = "# By aiinfra Ssh --config, which may write it again: "
_UNKNOWN_USER: Final = (
    "    # User: that of `gcloud compute os-login describe-profile`, where OS Login is on\n"
)
# gcloud's own keys, and its names for the hosts: what is known by one is known by the other.
_COMMON: Final = """\
    IdentityFile ~/.ssh/google_compute_engine
    IdentitiesOnly yes
    UserKnownHostsFile ~/.ssh/google_compute_known_hosts
    StrictHostKeyChecking accept-new
    CheckHostIP no
"""


def ssh(context: Context) -> None:
    """Print the command; on a terminal where there is its program, run it.

    Of connection.json only what it says of ranks, names and addresses is taken, and nothing is run
    that stands there: others may be able to write to the bucket.
    """
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to log in to")
    vms = connection.vms(cloud.folder)
    wanted = context.job
    name = next((it for it, vm in vms.items() if str(vm.get("rank")) == (wanted or "0")), wanted)
    if not name:
        name = next(iter(vms), "")  # as long as nobody has a rank
    if name not in vms and wanted and not wanted.isdigit() and context.config is None:
        _into(context, cloud, record, wanted)
        return
    if not vms:
        raise StateError(
            f"Nobody knows of VMs of {record.name_prefix}",
            code=Code.NO_CLUSTER,
            why="Create tells of VMs at its end; the nodes of a GKE cluster are for pods",
            fix="run Create; on GKE: Ssh JOB for a shell in a job's pod, and for an editor its"
            " Kubernetes extension, which attaches to that pod",
        )
    if name not in vms:
        raise SettingsError(
            f"There is no VM {wanted}",
            code=Code.INVALID_COMMAND_LINE,
            why=f"the cluster has {words.listed(list(vms))}",
            fix="write the name of one, or its rank, behind Ssh; or the name of a job that runs",
        )
    if "ssh_rank" in context.settings.model_fields_set:
        raise SettingsError(
            "--rank is of a job, and none is named",
            code=Code.INVALID_COMMAND_LINE,
            fix=f"Ssh {context.settings.ssh_rank} for the VM of that rank; Ssh JOB --rank RANK",
        )
    if context.config is not None:
        _configure(context, cloud, record, {name: vms[name]} if wanted else vms)
        return
    command = connection.ssh(name, record, is_public=bool(vms[name].get("external_ip")))
    if port := context.settings.ssh_forward:
        command = connection.tunnel(command, port)
    _report(context, cloud, {name: vms[name]}, lambda _: command)
    _open(context, name, shlex.split(command))


def _into(context: Context, cloud: Cloud, record: Record, wanted: str) -> None:
    """Open a shell where a rank of a job runs, in its container if it has one."""
    jobs = registry.named(record.kind).jobs(context, cloud, record)
    known = jobs.names()
    name = naming.newest(wanted, known)
    if name is None:
        raise SettingsError(
            f"There is no VM and no job {wanted}",
            code=Code.INVALID_COMMAND_LINE,
            fix="aiinfra Status lists the VMs, and aiinfra Jobs the jobs",
        )
    port = context.settings.ssh_forward
    job = jobs_action.find(context, jobs, name)
    rank = jobs_action.rank_of(context, job, "ssh_rank")
    way = jobs.way_in(job, rank)
    if job.state not in _RUNS:
        its = f" --rank {rank}" * (rank != job.ranks[0])
        left = f"where {way.folder} is its folder; aiinfra Fetch {name}{its} for what it wrote"
        raise SettingsError(
            f"{name} does not run: it is {'over: ' * job.state.is_over}{job.state}",
            code=Code.INVALID_COMMAND_LINE,
            why=job.why,
            fix=f"aiinfra Ssh {way.where} for a shell on its VM{'' if way.lost else f', {left}'}",
        )
    command = list(way.opens)
    if port and way.before:
        raise SettingsError(
            f"Ssh brings no port of a pod here: {name} runs in one",
            code=Code.WITHOUT_EFFECT,
            setting="--forward",
            fix=f"{way.before}; {way.forwards(port)}",
        )
    command += [f"--ssh-flag=-L {port}:localhost:{port}"] if port else []
    context.report.jobs = [replace(job, shell=shlex.join(command))]
    _open(context, way.where, command, way.before, way.access)


def _open(
    context: Context,
    where: str,
    command: Sequence[str],
    before: str = "",
    access: Callable[[], AbstractContextManager[Mapping[str, str]]] = (
        lambda: contextlib.nullcontext({})
    ),
) -> None:
    """Run the command where a person sits at a terminal, or print it.

    `before`: what has to be run before it where this program does not run it.
    """
    program = shutil.which(command[0])
    if not (context.console.opens_shells and program):
        context.console.result("\n".join(filter(None, [before, shlex.join(command)])))
        return
    context.console.progress(shlex.join(command))
    with access() as more:
        ended = subprocess.run(  # noqa: S603 - made here
            [program, *command[1:]], env={**context.environ, **more}, check=False
        )
    # What the shell ends with is its user's; this one is of ssh itself (ssh(1), "Exit status").
    if ended.returncode == _NOT_REACHED:
        raise ClusterError(
            f"ssh did not get to {where}, or was cut off",
            code=Code.UNREACHABLE,
            why=f"what {command[0]} and ssh say stands above",
            fix="Status shows whether the VM runs; without an external address you also need"
            " roles/iap.tunnelResourceAccessor",
        )


def _report(
    context: Context, cloud: Cloud, vms: Mapping[str, Any], command: Callable[[str], str]
) -> None:
    told = cloud.folder.read(connection.KEPT) or {}
    context.report.connection = VmsConnection(
        state=cloud.folder.location.url,
        terraform_state=json_object.text(told.get("terraform_state")),
        billing_label=json_object.text(told.get("billing_label")),
        dashboard=None,
        vms=tuple(
            VmConnection(
                name=name,
                rank=json_object.whole(vm.get("rank")),
                status=json_object.text(vm.get("status")),
                internal_ip=json_object.text(vm.get("internal_ip")) or None,
                external_ip=json_object.text(vm.get("external_ip")) or None,
                ssh=command(name),
                notebook=None,
                notebook_tunnel=None,
            )
            for name, vm in vms.items()
        ),
        ray=None,
    )


# ------------------------------------------------------------------ OpenSSH's configuration


def _configure(context: Context, cloud: Cloud, record: Record, vms: Mapping[str, Any]) -> None:
    """Print what OpenSSH has to know of VMs, or write it to the file of `--config`."""
    base = names.INSTANCE.of(record.name_prefix)
    found = cloud.api.named_instances(record.project_id, record.zone, base, "id,name")
    ids = {str(it["name"]): str(it["id"]) for it in found}
    there = {name: vm for name, vm in vms.items() if name in ids}
    if not there:
        raise StateError(
            f"No VM of {record.name_prefix} is there",
            code=Code.NO_CLUSTER,
            fix="Status says why; Create makes them",
        )
    commands = {
        name: connection.ssh(name, record, is_public=bool(_address(vm)))
        for name, vm in there.items()
    }
    _report(context, cloud, there, commands.__getitem__)
    user = _user(context, next(iter(commands.values())))
    head = f"{_MINE}{record.name_prefix} in {record.project_id}, {record.zone}"
    # Rank 0 first, and those without a rank last.
    ranks = {name: json_object.whole(vm.get("rank")) for name, vm in there.items()}
    order = sorted(there, key=lambda it: (ranks[it] is None, ranks[it]))
    text = "\n".join([head, *(_host(it, there[it], ids[it], record, user) for it in order)])
    if not context.config:
        context.console.result(text)
        return
    file = Path(context.config).expanduser()
    try:
        if file.exists() and not file.read_text("utf-8").startswith(_MINE):
            raise SettingsError(
                f"{file} is not one that Ssh --config has written, and is left as it is",
                code=Code.INVALID_COMMAND_LINE,
                fix=f"--config={file.with_name(f'aiinfra-{record.name_prefix}')}, and Include that"
                " file at the top of your own",
            )
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o600)  # ssh takes none that others may write to
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{file} can't be written",
            code=Code.INVALID_COMMAND_LINE,
            why=getattr(error, "strerror", None) or str(error),
            fix=f"--config=~/.ssh/aiinfra-{record.name_prefix}",
        ) from error
    context.console.result(
        f"{file} has {counted(len(there), 'VM')}: put `Include {file}` at the top of"
        f" ~/.ssh/config, then ssh {order[0]}"
    )


def _user(context: Context, command: str) -> str:
    """The user as whom gcloud logs in, which OS Login decides; "" where that can't be known."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        return ""
    with context.progress.waits("gcloud, which knows your user name on VMs"):
        asked = subprocess.run(  # noqa: S603 - made here
            [gcloud, *shlex.split(command)[1:], "--quiet", "--dry-run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(context.environ),
            text=True,
            check=False,
        )
    last = _USER.fullmatch(next(iter(asked.stdout.split()[-1:]), ""))
    return last[1] if last and asked.returncode == 0 else ""


def _host(name: str, vm: Mapping[str, Any], number: str, record: Record, user: str) -> str:
    rank, address = json_object.whole(vm.get("rank")), _address(vm)
    called = name if rank is None else f"{name} {record.name_prefix}-{rank}"
    tunnel = (
        f"    ProxyCommand gcloud compute start-iap-tunnel {name} %p --listen-on-stdin"
        f" --project {record.project_id} --zone {record.zone} --verbosity warning\n"
    )
    return (
        f"Host {called}\n    HostName {address or name}\n    HostKeyAlias compute.{number}\n"
        + (f"    User {user}\n" if user else _UNKNOWN_USER)
        + ("" if address else tunnel)
        + _COMMON
    )


def _address(vm: Mapping[str, Any]) -> str:
    """The public address that connection.json says, if it is one; "" for none."""
    try:
        return str(ipaddress.ip_address(json_object.text(vm.get("external_ip"))))
    except ValueError:
        return ""
