"""Being the only run that changes a deployment, and what an interrupted one leaves."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from provision.errors import Interrupted, ProvisionError
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
    context: Context, cloud: Cloud, place: Place, root: Path, tool: Terraform
) -> Iterator[None]:
    """See that nothing of an ended run is in the way, and announce this one.

    Args:
        context: The run.
        cloud: Has the lock.
        place: What is worked on.
        root: The run folder.
        tool: Lives on for a while should we be killed, and then counts as this run.

    Raises:
        StateError: The deployment is locked.
    """
    lock = cloud.folder.lock()
    if lock is not None:
        free_stale(context, cloud, lock)
    with liveness.announced(cloud.folder, root) as alive:
        tool.inherits(alive)
        settle.wait(cloud.api, place, context.progress)
        yield


def free_stale(context: Context, cloud: Cloud, lock: Lock) -> None:
    """Free the lock of a dead run, if somebody agrees; Destroy never asks.

    Raises:
        StateError: Its run may be alive, or nobody agrees.
    """
    if not liveness.is_stale(cloud.folder, lock):
        raise lock.error()
    error = lock.stale_error()
    if not context.agreed:
        if context.report.action == Action.DESTROY or not context.console.is_terminal:
            raise error
        context.console.progress(f"{error}: {error.problems[0].why}.")
        if not context.console.ask("Shall the lock be freed?"):
            raise error
    # Should somebody have been quicker, Terraform finds out whose lock is there now.
    if cloud.folder.free(lock):
        context.console.progress(
            f"Freed the lock of {lock.who}: no process of that run lives any more"
        )


@contextlib.contextmanager
def explained(cloud: Cloud, how_to_go_on: str) -> Iterator[None]:
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


def _lock_after_interrupt(cloud: Cloud) -> str:
    try:
        lock = cloud.folder.lock()
    except ProvisionError as error:
        return f"whether its lock is free could not be found out ({error})"
    return f"its lock was not freed: {lock.url}" if lock else "its lock is free"
