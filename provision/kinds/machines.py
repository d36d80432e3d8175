"""Waiting for the machines of a managed instance group: VMs, or the nodes of a node pool."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.documents.timeline import StageName
from provision.errors import ClusterError, StillWaiting
from provision.google import refusals
from provision.google.api import GoogleApiError
from provision.kinds import shortage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.spec.pools import Group
    from provision.time.progress import Progress

_POLL: Final = 10.0
"""Poll interval in seconds of cloud time."""


def wait(  # noqa: PLR0913 - each is a fact of its own
    api: GoogleApi,
    group: Group,
    *,
    timeout: float,
    progress: Progress,
    young: bool = False,
    may_leave: bool = False,
) -> None:
    """Wait until all VMs of a managed instance group run.

    `timeout`: the longest wait in seconds of cloud time (CAPACITY_TIMEOUT).

    Raises:
        CapacityError: Google refused machines. The group is kept and keeps trying.
        ClusterError: The group can't be read.
        StillWaiting: Not all VMs run in time; everything is kept.
    """
    with progress.stage(StageName.MACHINES) as stage:
        deadline = stage.deadline(timeout, _POLL)
        while True:
            instances = _look(api, group)
            running = sum(_runs(instance) for instance in instances)
            news = f"{running} of {group.size} {group.members} run"
            if running >= group.size and len(instances) == group.size:
                stage.counts(news)
                return
            is_young = young and deadline.passed < refusals.YOUNG
            shortage.check(group, instances, running, api, young=is_young, may_leave=may_leave)
            news += _reasons(instances)
            stage.news(news)
            if deadline.is_over:
                raise StillWaiting(
                    f"After {timeout / 60:g} minutes, {news}",
                    why="Google has not provided all machines yet; those that run cost money",
                    fix="everything is kept: run Create again to keep waiting, or Destroy to give"
                    " up; a higher CAPACITY_TIMEOUT waits longer",
                    setting="CAPACITY_TIMEOUT",
                )
            deadline.pause()


def all_run(api: GoogleApi, group: Group) -> bool:
    """Whether all VMs of a managed instance group run now.

    Raises:
        ClusterError: The group can't be read.
    """
    instances = _look(api, group)
    return len(instances) == group.size and all(map(_runs, instances))


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Report Google's errors after the apply as errors of a cluster that exists.

    `what`: what could not be checked; it completes "could not check whether".

    Raises:
        ClusterError: In place of Google's error.
    """
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            f"The cluster was created, but it could not be checked whether {what}",
            code=error.code_or(Code.NOT_CONFIRMED),
            why=problem.why,
            fix="\n".join(
                filter(None, [problem.fix, "run Create again to continue, or Destroy to remove it"])
            ),
        ) from error


def _look(api: GoogleApi, group: Group) -> list[dict[str, Any]]:
    """The managed instances of a group.

    Raises:
        ClusterError: Google does not return them.
    """
    with told(f"the VMs of the group {group.name} run"):
        return api.managed_instances(group.project, group.zone, group.name)


def _runs(instance: Mapping[str, Any]) -> bool:
    return instance.get("instanceStatus") == "RUNNING" and instance.get("currentAction") == "NONE"


def _reasons(instances: Sequence[Mapping[str, Any]]) -> str:
    """Google's messages about why VMs do not run, without duplicates."""
    return "".join(f"; {refusals.words(error)}" for error in refusals.of_instances(instances))
