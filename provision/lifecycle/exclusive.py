"""Making sure that only one run changes a deployment, and cleaning up after interrupted runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision.errors import Interrupted, ProvisionError, Unanswered
from provision.lifecycle import settle
from provision.settings.choices import Action
from provision.state import liveness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provision.context import Cloud, Context
    from provision.state.location import Place
    from provision.terraform import Terraform
    from provision.terraform.lock import Lock


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
        lock = cloud.folder.lock()
        if lock is not None:
            free_stale(context, cloud, lock)
        with cloud.folder.held(context.report.action, run.lock_id):
            # An earlier run may have been killed in the middle of a move.
            before = cloud.folder.record()
            places = [place] if before is None else [place, before]
            settle.wait(cloud.api, places, context.progress)
            try:
                yield lock is not None or run.follows_dead
            finally:
                run.has_lost_track = tool is not None and tool.has_lost_track


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
