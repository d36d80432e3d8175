"""Making sure that only one run changes a deployment, and cleaning up after interrupted runs.

Whether a run was killed or interrupted, its last operations continue without it. A resource that
is still being created or deleted can't be changed or created again, so the next run waits first.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.codes import Code
from provision.documents.timeline import StageName
from provision.errors import Interrupted, ProvisionError, StateError, Unanswered
from provision.google import resources
from provision.google.api import Service
from provision.settings.choices import Action
from provision.state import history, liveness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.terraform import Terraform
    from provision.terraform.lock import Lock
    from provision.time.stages import Progress

_POLL: Final = 5.0  # poll interval in seconds of cloud time
_LONGEST: Final = 1200.0
"""Seconds of cloud time after which the run continues anyway, to find out what is wrong."""
_PASSING: Final = {"CREATING": "insert", "DELETING": "delete", "REPAIRING": "repair"}
"""Transitional states of a Filestore instance -> the operation that is running."""
_COLLECTIONS: Final = frozenset(
    row.look.collection
    for row in resources.ALL
    if row.lookup and row.look.service is Service.COMPUTE
)
"""The collections of Compute Engine in which this tool creates resources."""


def wait_for_earlier_run(api: GoogleApi, places: Sequence[Place], progress: Progress) -> None:
    """Wait until no resource of a deployment is being created, changed or deleted.

    VMs of a group do not count: a group can be changed and deleted while its VMs come and go.
    `api`: Google; without permission to list operations, there is no wait. `places`: the deployment
    whose resources count: where it is to be, and if that is another zone, where it was.
    """
    with progress.stage(StageName.EARLIER_RUN) as stage:
        deadline = stage.deadline(_LONGEST, _POLL)
        while (found := ", ".join(_unfinished(api, places))) and not deadline.is_over:
            stage.news(f"Waiting for operations of an earlier run: {found}")
            deadline.pause()


def await_account(progress: Progress, seconds: float) -> None:
    """Give Google time to know a new account everywhere."""
    progress.tell(f"Google does not know the new account everywhere yet; again in {seconds:.0f} s")
    progress.deadline(seconds, seconds).pause()


def _unfinished(api: GoogleApi, places: Sequence[Place]) -> list[str]:
    """What is under way, as "delete np-mig"; all is asked at the same time."""
    place = places[0]
    regions = {one.region: one for one in places}
    scopes = ["global", *(f"regions/{region}" for region in regions)]
    scopes += [f"zones/{zone}" for zone in dict.fromkeys(one.zone for one in places)]
    looked = [(place.project_id, scope) for scope in scopes]
    looked += [(host, "global") for host in {host for one in places for host in one.hosts}]
    looks: list[Iterator[str]] = [
        *(_in_scope(api, place.name_prefix, *one) for one in looked),
        *(_on_clusters(api, one) for one in regions.values()),
        _on_shares(api, place),
    ]
    with concurrent.futures.ThreadPoolExecutor(len(looks)) as pool:
        return [one for found in pool.map(list[str], looks) for one in found]


def _in_scope(api: GoogleApi, prefix: str, project: str, scope: str) -> Iterator[str]:
    for operation in api.unfinished(project, scope):
        collection, name = operation.get("targetLink", "/").split("/")[-2:]
        if collection in _COLLECTIONS and name.startswith(f"{prefix}-"):
            yield f"{operation['operationType']} {name}"


def _on_clusters(api: GoogleApi, place: Place) -> Iterator[str]:
    for operation in api.cluster_operations(place.project_id, place.region):
        cluster = operation.get("targetLink", "").partition("/clusters/")[2].partition("/")[0]
        if cluster == names.CLUSTER.of(place.name_prefix):
            yield f"{operation['operationType']} {cluster}"


def _on_shares(api: GoogleApi, place: Place) -> Iterator[str]:
    for instance in api.listed(resources.FILESTORE.look, place.project_id):
        name, state = instance["name"].rpartition("/")[2], instance.get("state")
        if state in _PASSING and name.startswith(f"{place.name_prefix}-"):
            yield f"{_PASSING[state]} {name}"


@contextlib.contextmanager
def alone(
    context: Context, cloud: Cloud, place: Place, root: Path, tool: Terraform | None = None
) -> Iterator[bool]:
    """Hold the deployment's lock, from the run's first write to its last delete.

    Clears what an earlier run left in the way. Yields whether such a run was killed while it
    changed the deployment. `tool`: Terraform, where it works too; if this process is killed,
    Terraform lives on for a while, and the run counts as alive until it has ended too.
    """
    with liveness.announced(cloud.folder, root) as run:
        if tool is not None:
            tool.inherits(run.alive)
        with contextlib.ExitStack() as stack:
            left = _take(context, cloud, run.lock_id, stack)
            # An earlier run may have been killed in the middle of a move.
            before = cloud.folder.record()
            if before is not None:  # a run writes it before it makes anything
                wait_for_earlier_run(cloud.api, [place, before], context.progress)
            ended, began = "done", context.clock.now()
            try:
                yield left is not None or run.follows_dead
            except (ProvisionError, Interrupted) as error:
                ended = str(error.problems[0].code)
                raise
            except BaseException:
                ended = str(Code.UNEXPECTED)
                raise
            finally:
                run.has_lost_track = tool is not None and tool.has_lost_track
                since = min(began, (left and left.taken) or began)
                _remember(context, cloud, ended, since, is_first=before is None)


def _remember(context: Context, cloud: Cloud, ended: str, began: float, *, is_first: bool) -> None:
    """Add the run to what was done here, unless nothing is left but logs."""
    with contextlib.suppress(ProvisionError):
        record = cloud.folder.record()
        if record is not None:
            history.add(
                cloud.folder,
                str(context.report.action),
                now=context.clock.now(),
                ended=ended,
                hourly=record.hourly,
                began=began,
                is_first=is_first,
            )


def _take(context: Context, cloud: Cloud, lock_id: str, stack: contextlib.ExitStack) -> Lock | None:
    """Take the lock for as long as the stack lasts; returns one that a run had left."""
    held = functools.partial(cloud.folder.held, context.report.action, lock_id)
    try:
        stack.enter_context(held())
    except StateError as error:
        if error.problems[0].code is not Code.STATE_LOCKED:
            raise
    else:
        return None
    lock = cloud.folder.lock()
    if lock is not None:
        free_stale(context, cloud, lock)
    stack.enter_context(held())
    return lock


def free_stale(context: Context, cloud: Cloud, lock: Lock) -> None:
    """Release the lock of a dead run, if somebody agrees; Destroy never asks."""
    if context.break_lock:
        _break(context, cloud, lock)
        return
    if not liveness.is_stale(cloud.folder, lock):
        raise lock.error()
    error = lock.stale_error()
    if not context.agreed:
        if context.report.action == Action.DESTROY or not context.console.is_terminal:
            raise error
        context.console.progress(f"{error}: {error.problems[0].why}.")
        if not context.console.ask("Release the lock?"):
            raise error
    # If another run was faster and took the lock, whoever takes it next is told who holds it.
    if cloud.folder.free(lock):
        context.console.progress(f"Released the lock of {lock.who}: no process of that run is left")


def _break(context: Context, cloud: Cloud, lock: Lock) -> None:
    """Release a lock whose holder can't be proven dead, if it is the one that was named."""
    if context.break_lock != lock.id:
        raise lock.error()
    if cloud.folder.free(lock):
        context.console.progress(
            f"Released the lock {lock.id}, which {lock.who} has held since {lock.created}"
        )


@contextlib.contextmanager
def explained(cloud: Cloud, how_to_go_on: str) -> Iterator[None]:
    """After an interrupt, say where the state is, whether it is locked, and how to go on."""
    try:
        yield
    except Unanswered:
        raise
    except Interrupted as error:
        (problem,) = error.problems
        lock = _lock_after_interrupt(cloud)
        raise Interrupted(
            error.signum,
            problem.what,
            why=f"the state is in {cloud.folder.location.url}; {lock}",
            fix=how_to_go_on,
        ) from error


def _lock_after_interrupt(cloud: Cloud) -> str:
    try:
        lock = cloud.folder.lock()
    except ProvisionError as error:
        return f"could not check whether it is locked ({error})"
    return f"it is still locked: {lock.url}" if lock else "it is not locked"
