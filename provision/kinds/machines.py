"""Waiting for the machines of a managed instance group, be they VMs or the nodes of a pool."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from provision.errors import ClusterError, StillWaiting
from provision.google import refusals
from provision.google.api import GoogleApiError
from provision.kinds import shortage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.spec.group import Group
    from provision.time.progress import Progress

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a group."""


def wait(
    api: GoogleApi,
    group: Group,
    *,
    timeout: float,
    progress: Progress,
) -> None:
    """Wait until all VMs of a managed instance group run.

    Args:
        api: Google.
        group: The group.
        timeout: Seconds of cloud time to wait at most (CAPACITY_TIMEOUT).
        progress: The run's clock and voice.

    Raises:
        CapacityError: Google refused machines. The group is kept and goes on trying.
        ClusterError: The group can't be looked at.
        StillWaiting: They do not all run by then; everything is kept.
    """
    deadline = progress.deadline(timeout, _POLL)
    said = ""
    while True:
        instances = _look(api, group)
        running = sum(_runs(instance) for instance in instances)
        if running >= group.size and len(instances) == group.size:
            progress.tell(f"{running} of {group.size} {group.members} run")
            return
        shortage.check(group, instances, running, api)
        news = f"{running} of {group.size} {group.members} run{_reasons(instances)}"
        if news != said:
            progress.tell(news)
            said = news
        if deadline.is_over:
            raise StillWaiting(
                f"After {timeout / 60:g} minutes, {news}",
                why="Google has not given all machines yet; those that run cost money",
                fix="everything is kept: run Create again to go on waiting, Destroy to give up,"
                " or raise CAPACITY_TIMEOUT",
                setting="CAPACITY_TIMEOUT",
            )
        deadline.pause()


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """What Google does not tell of something that is there is no failed check of the beginning."""
    try:
        yield
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            f"The cluster was made, but whether {what} could not be found out",
            why=problem.why,
            fix="\n".join(
                filter(None, [problem.fix, "run Create again to go on, or Destroy to remove it"])
            ),
        ) from error


def _look(api: GoogleApi, group: Group) -> list[dict[str, Any]]:
    """What the group says of its VMs.

    Raises:
        ClusterError: Google does not tell.
    """
    with told(f"the VMs of the group {group.name} run"):
        return api.managed_instances(group.project, group.zone, group.name)


def _runs(instance: Mapping[str, Any]) -> bool:
    return instance.get("instanceStatus") == "RUNNING" and instance.get("currentAction") == "NONE"


def _reasons(instances: Sequence[Mapping[str, Any]]) -> str:
    """Google's own words on what keeps VMs from running, each once."""
    return "".join(f"; {refusals.words(error)}" for error in refusals.of_instances(instances))
