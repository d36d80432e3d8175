"""The actions, as straight recipes: what happens in which order, and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision import (
    adoption,
    auth,
    capacity,
    checks,
    debug_folder,
    deployment,
    pending,
    runs,
    state,
    terraform,
    waits,
)
from provision.clusters import Kind
from provision.errors import (
    CredentialsError,
    Interrupted,
    ProvisionError,
    SettingsError,
    StateError,
    TerraformError,
)
from provision.google_api import GoogleApi
from provision.logs import Log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from provision import plans
    from provision.console import Console
    from provision.deployment import Deployment
    from provision.errors import Problem
    from provision.locks import Lock
    from provision.report import Report
    from provision.settings import Settings


class Action(enum.StrEnum):
    """What a user can ask for."""

    CREATE = "Create"
    DESTROY = "Destroy"
    VALIDATE = "Validate"
    PLAN = "Plan"
    DEBUG = "Debug"
    STATUS = "Status"
    TEST = "Test"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What every action needs to know about this run.

    Attributes:
        settings: The checked settings.
        environ: The process's environment.
        console: Where to speak.
        report: What is found out and done; filled as it goes.
        offline: Nothing may be asked of Google.
        agreed: Whoever runs this has agreed to losses beforehand (`--yes`).
    """

    settings: Settings
    environ: Mapping[str, str]
    console: Console
    report: Report
    offline: bool = False
    agreed: bool = False


@dataclass(frozen=True)
class _Cloud:
    """Google, as these credentials see it, and the deployment's folder in it."""

    api: GoogleApi
    folder: state.StateFolder
    project_number: str


def create(run: Run) -> None:
    """Check, plan, show, apply that plan, wait for the VMs, say how to connect."""
    cloud = _connect(run)
    made = cloud.folder.require_bucket(cloud.project_number, run.settings.region)
    if made:
        run.console.progress(f"Made the bucket gs://{cloud.folder.location.bucket} for the state")
    target = _deployment(run, cloud, bucket=True)
    with _deployed(run, cloud, target) as (tool, outputs):
        run.report.outputs = outputs
        cloud.folder.write_record(_record(run, target, tool, outputs.get("image", {})))
    waits.for_vms(
        cloud.api,
        _group(target, outputs),
        timeout=run.settings.capacity_timeout,
        environ=run.environ,
        tell=run.console.progress,
    )
    _tell_connection(run, cloud, target, outputs)


def _group(target: Deployment, outputs: Mapping[str, Any]) -> capacity.Group:
    """The group whose VMs are waited for."""
    made = outputs["group"]
    gpu = target.variables["group"]["gpu"] or {"type": None, "count": 0}
    return capacity.Group(
        project=target.settings.project_id,
        zone=made["zone"],
        name=made["name"],
        size=made["size"],
        machine_type=target.settings.vm_type,
        gpu=gpu["type"],
        gpus=gpu["count"],
    )


def plan(run: Run) -> bool:
    """Show what Create would do, and say whether that is anything.

    Nothing is written to the cloud, not even a lock.
    """
    cloud = _connect(run)
    exists = cloud.folder.check_bucket(cloud.project_number)
    if not exists and not cloud.folder.location.is_default:
        raise cloud.folder.missing()
    target = _deployment(run, cloud, bucket=exists)
    backend = exists and cloud.folder.has_state()
    with (
        _log(run, cloud if backend else None, "plan") as log,
        deployment.run_folder(target, backend=backend) as root,
    ):
        tool = _terraform(run, root, log)
        tool.init()
        found = tool.plan(var_file=deployment.VARIABLES_FILE, lock=False)
        orphans = adoption.find(
            found.creations, target.cluster_id, cloud.folder.addresses(), cloud.api
        )
        here = [orphan for orphan in orphans if not orphan.displaces]
        if here:
            _tell_orphans(run, here)
            deployment.write_imports(root, adoption.import_blocks(here))
            found = tool.plan(var_file=deployment.VARIABLES_FILE, lock=False)
    run.report.changes = found.counts
    run.console.result(_counts(found))
    return not found.is_empty


def validate(run: Run) -> None:
    """Check all that can be checked: offline always, with Google where credentials are."""
    target = _shown(run, deployment.make(run.settings))
    if run.offline:
        run.console.result("The settings are valid. Google was not asked (--offline).")
        return
    try:
        cloud = _connect(run)
    except CredentialsError as error:
        (problem,) = error.problems
        note = dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")
        _note(run, [note])
        run.console.result("The settings are valid. Google was not asked: no credentials.")
        return
    if cloud.folder.check_bucket(cloud.project_number):
        _check_record(run, cloud, target.kind)
    elif not cloud.folder.location.is_default:
        raise cloud.folder.missing()
    with _log(run, None, "validate") as log, deployment.run_folder(target, backend=False) as root:
        tool = _terraform(run, root, log)
        tool.init(backend=False)
        tool.validate()
    run.console.result("The settings are valid, and the online checks passed.")


def destroy(run: Run) -> None:
    """Remove what Create made, then the state folder but its logs."""
    cloud = _connect(run)
    location = cloud.folder.location
    run.report.backend = location.backend
    exists = cloud.folder.check_bucket(cloud.project_number)
    if not exists and not location.is_default:
        raise cloud.folder.missing()
    record = cloud.folder.record() if exists else None
    if record is None:
        run.report.changes = {"add": 0, "change": 0, "destroy": 0}
        run.console.result(f"Nothing to destroy: there is no deployment in {location.url}")
        return
    _check_project(run, cloud, record)
    with (
        _log(run, cloud, "destroy") as log,
        deployment.removal_folder(Kind(record.kind), location, record) as root,
        _explained(cloud, "run Destroy again to remove the rest"),
    ):
        tool = _terraform(run, root, log)
        with _alone(run, cloud, record, root, tool):
            tool.init()
            _remove(run, cloud, record, tool)
    cloud.folder.clear()
    count = (run.report.changes or {}).get("destroy", 0)
    run.console.result(f"Destroyed {count} resources; {location.url} holds nothing but its logs.")


def debug(run: Run) -> None:
    """Write down all that a run would use, and on a terminal open a shell there."""
    target = _shown(run, deployment.make(run.settings))
    binary = terraform.find(run.environ)
    folder = debug_folder.write(target, run.report, binary)
    run.console.result(f"Everything a run would use is in {folder}")
    if run.console.is_terminal:
        run.console.progress(f"A shell in {folder}, with terraform ready; leave it with: exit")
        debug_folder.open_shell(folder, terraform.environment(run.environ))


# ------------------------------------------------------------------ steps


def _connect(run: Run) -> _Cloud:
    """Find out who asks, and meet the project and the state folder."""
    if run.offline:
        raise SettingsError(
            "--offline can't be had with this action: it needs Google",
            fix="use --offline with Validate, or leave it out",
        )
    credentials = auth.credentials()
    api = GoogleApi(credentials, run.environ, run.console.progress)
    project_number = api.project_number(run.settings.project_id)
    folder = state.StateFolder(
        deployment.locate(run.settings), run.settings.project_id, credentials, run.environ
    )
    return _Cloud(api, folder, project_number)


def _deployment(run: Run, cloud: _Cloud, *, bucket: bool) -> Deployment:
    """Make the deployment, with the image that an earlier Create has settled on."""
    kind = deployment.make(run.settings).kind
    record = _check_record(run, cloud, kind) if bucket else None
    settings, notes = checks.settle_image(run.settings, record, cloud.api)
    _note(run, notes)
    return _shown(run, deployment.make(settings, record.image if record else None))


def _note(run: Run, notes: Sequence[Problem]) -> None:
    run.report.notes.extend(notes)
    run.console.notes(notes)


def _shown(run: Run, target: Deployment) -> Deployment:
    run.report.tfvars = target.masked_variables
    run.report.backend = target.location.backend
    return target


def _check_record(run: Run, cloud: _Cloud, kind: Kind) -> state.Record | None:
    """Make sure that what exists under this prefix is ours, of this project and this kind."""
    record = cloud.folder.record()
    if record is None:
        return None
    _check_project(run, cloud, record)
    if record.kind != kind:
        raise StateError(
            f"{run.settings.name_prefix} is a cluster of the kind {record.kind} already",
            why=f"these settings describe one of the kind {kind}; applying them would"
            " replace everything",
            fix="run Destroy first, or choose another NAME_PREFIX",
            setting="ORCHESTRATOR_TYPE",
        )
    return record


def _check_project(run: Run, cloud: _Cloud, record: state.Record) -> None:
    if record.project_id != run.settings.project_id:
        raise StateError(
            f"{cloud.folder.location.url} holds a deployment of the project {record.project_id}",
            why=f"PROJECT_ID is {run.settings.project_id}",
            fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH, or set PROJECT_ID to that"
            " project",
            setting="PROJECT_ID",
        )


@contextlib.contextmanager
def _deployed(
    run: Run, cloud: _Cloud, target: Deployment
) -> Iterator[tuple[terraform.Terraform, dict[str, Any]]]:
    """Plan, show, apply that plan; gives Terraform and the outputs."""
    with (
        _log(run, cloud, "create") as log,
        deployment.run_folder(target, backend=True) as root,
        _explained(cloud, "run Create again to finish, or Destroy to remove what was made"),
    ):
        tool = _terraform(run, root, log)
        if cloud.folder.record() is None:
            # Before anything else is there: a folder without it would not count as ours.
            cloud.folder.write_record(_record(run, target, tool, {}))
        with _alone(run, cloud, target.settings, root, tool):
            tool.init()
            found = tool.plan(var_file=deployment.VARIABLES_FILE)
            orphans = adoption.find(
                found.creations, target.cluster_id, cloud.folder.addresses(), cloud.api
            )
            if orphans:
                _tell_orphans(run, orphans)
                tool.forget([orphan.address for orphan in orphans if orphan.displaces])
                deployment.write_imports(root, adoption.import_blocks(orphans))
                found = tool.plan(var_file=deployment.VARIABLES_FILE)
            run.report.changes = found.counts
            run.console.progress(_counts(found))
            _agree(run, found)
            if not found.is_empty:
                tool.apply()
            yield tool, tool.outputs()


@contextlib.contextmanager
def _alone(
    run: Run, cloud: _Cloud, place: pending.Place, root: Path, tool: terraform.Terraform
) -> Iterator[None]:
    """See that nothing of an ended run is in the way, and announce this one.

    Args:
        run: The run.
        cloud: Has the lock.
        place: What is worked on.
        root: The run folder.
        tool: Lives on for a while should we be killed, and then counts as this run.

    Raises:
        StateError: The deployment is locked.
    """
    lock = cloud.folder.lock()
    if lock is not None:
        _free_stale(run, cloud, lock)
    with runs.announced(cloud.folder, root) as alive:
        tool.inherits(alive)
        pending.wait(cloud.api, place, run.environ, run.console.progress)
        yield


def _free_stale(run: Run, cloud: _Cloud, lock: Lock) -> None:
    """Free the lock of a dead run, if somebody agrees; Destroy never asks."""
    if not runs.is_stale(cloud.folder, lock):
        raise lock.error()
    error = lock.stale_error()
    if not run.agreed:
        if run.report.action == Action.DESTROY or not run.console.is_terminal:
            raise error
        run.console.progress(f"{error}: {error.problems[0].why}.")
        if not run.console.ask("Shall the lock be freed?"):
            raise error
    # Should somebody have been quicker, Terraform finds out whose lock is there now.
    if cloud.folder.free(lock):
        run.console.progress(f"Freed the lock of {lock.who}: no process of that run lives any more")


def _record(
    run: Run, target: Deployment, tool: terraform.Terraform, image: Mapping[str, str | None]
) -> state.Record:
    settled: dict[str, str | None] = {}
    if image:
        asked = target.settings
        family = None if asked.image_name else asked.image_family_name
        settled = {"project": asked.image_project, "family": family, "name": image["name"]}
    return target.record(run.report.settings or {}, tool.binary.version, settled)


def _remove(run: Run, cloud: _Cloud, record: state.Record, tool: terraform.Terraform) -> None:
    """Remove what the state has and what only the cloud has; either can stand in the other's way.

    Each round removes something, or fails.
    """
    removed = 0
    while True:
        removed += _sweep(run, cloud, record, last=False)
        found = tool.plan(destroy=True)
        run.report.changes = found.counts | {"destroy": found.destroy + removed}
        try:
            tool.apply()
        except TerraformError:
            swept = 0
            # A Terraform that was killed has left its lock; what is told is how it ended.
            with contextlib.suppress(StateError):
                swept = _sweep(run, cloud, record, last=False)
            if not swept:
                raise
            removed += swept
        else:
            break
    # What a run that was killed had asked for can come to be after the first look.
    removed += _sweep(run, cloud, record, last=True)
    run.report.changes = found.counts | {"destroy": found.destroy + removed}


def _tell_orphans(run: Run, orphans: Sequence[adoption.Orphan]) -> None:
    for orphan in orphans:
        run.console.progress(
            f"{orphan.import_id} is there already: a run that ended early left it behind."
            " It is brought into the state."
        )


def _sweep(run: Run, cloud: _Cloud, record: state.Record, *, last: bool) -> int:
    """Remove what ended runs have left behind, under the lock, so that no run is at work."""
    with cloud.folder.held("OperationTypeSweep"):
        return adoption.sweep(
            record.project_id,
            record.cluster_id,
            cloud.folder.known(),
            cloud.api,
            run.console.progress,
            last=last,
        )


def _agree(run: Run, found: plans.Plan) -> None:
    """Nothing is replaced, removed or made smaller unless somebody agrees.

    Raises:
        SettingsError: Nobody did.
    """
    if not found.losses or run.agreed:
        return
    losses = "\n".join(found.losses)
    if run.console.is_terminal:
        run.console.progress(losses)
        if run.console.ask("Shall that be done?"):
            return
        raise SettingsError("Nothing was changed, as you asked", why=losses)
    raise SettingsError(
        "This Create would replace, remove or shrink what exists; nothing was changed",
        why=losses,
        fix="if that is what you want, run it again with --yes",
    )


@contextlib.contextmanager
def _explained(cloud: _Cloud, how_to_go_on: str) -> Iterator[None]:
    """Say after an interrupt what was left and how to go on."""
    try:
        yield
    except Interrupted as error:
        (problem,) = error.problems
        lock = _lock_after_interrupt(cloud)
        raise Interrupted(
            error.signum,
            problem.what,
            why=f"the state is in {cloud.folder.location.url}; {lock}",
            fix=how_to_go_on,
        ) from error


def _lock_after_interrupt(cloud: _Cloud) -> str:
    try:
        lock = cloud.folder.lock()
    except ProvisionError as error:
        return f"whether its lock is free could not be found out ({error})"
    return f"its lock was not freed: {lock.url}" if lock else "its lock is free"


def _terraform(run: Run, root: Path, log: Log) -> terraform.Terraform:
    voice = terraform.Voice(
        write=log.write, tell=run.console.progress, colours=log.colours and run.console.colours
    )
    own = {name.upper() for name in type(run.settings).model_fields}
    environ = terraform.environment(run.environ, private=own)
    return terraform.Terraform(terraform.find(run.environ), root, environ, voice)


@contextlib.contextmanager
def _log(run: Run, cloud: _Cloud | None, action: str) -> Iterator[Log]:
    """Where Terraform's output goes; a kept log is uploaded at the end, also of a failure."""
    log = Log(run.console.raw, keep=run.settings.minimize_terraform_logging is not None)
    try:
        yield log
    finally:
        if log.text and cloud is not None:
            name = log.name(action)
            cloud.folder.write(name, log.text, "text/plain")
            run.console.progress(f"Terraform's output is in {cloud.folder.location.url}/{name}")


def _counts(found: plans.Plan) -> str:
    if found.is_empty:
        return "No changes: what exists is what the settings describe."
    if found.imported:
        return (
            f"Plan: {found.imported} to import, {found.add} to add, {found.change} to change,"
            f" {found.destroy} to destroy."
        )
    return f"Plan: {found.add} to add, {found.change} to change, {found.destroy} to destroy."


def _tell_connection(
    run: Run, cloud: _Cloud, target: Deployment, outputs: Mapping[str, Any]
) -> None:
    connection = target.cluster.connection(target.settings, outputs, cloud.api) | {
        "state": target.location.url,
        "billing_label": f"aiinfra-cluster={target.cluster_id}",
    }
    run.report.connection = connection
    cloud.folder.write(
        "connection.json", json.dumps(connection, indent=2) + "\n", "application/json"
    )
    run.console.result(connection_text(connection))


def connection_text(connection: Mapping[str, Any]) -> str:
    """The connection block for people."""
    lines = ["Connect to the VMs:"]
    lines += [f"  {vm['name']}: {vm['ssh']}" for vm in connection["vms"]]
    lines += [
        f"Terraform state: {connection['state']}",
        f"Billing label: {connection['billing_label']}",
    ]
    return "\n".join(lines)
