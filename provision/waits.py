"""Waiting for what Google takes its time for: bounded, and never silent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from provision import capacity, clock
from provision.errors import ClusterError, StillWaiting
from provision.google_api import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provision.capacity import Group
    from provision.google_api import GoogleApi

_POLL = 10.0
"""Seconds of cloud time between two looks at a group."""
_SHORTEST_POLL = 0.05
_SHORTEST_DEADLINE = 10.0


def for_vms(
    api: GoogleApi,
    group: Group,
    *,
    timeout: float,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    """Wait until all VMs of a managed instance group run.

    Args:
        api: Google.
        group: The group.
        timeout: Seconds of cloud time to wait at most (CAPACITY_TIMEOUT).
        environ: For the clock's rate.
        tell: Takes a sentence whenever there is news.

    Raises:
        CapacityError: Google refused machines. The group is kept and goes on trying.
        ClusterError: The group can't be looked at.
        StillWaiting: They do not all run by then; everything is kept.
    """
    rate = clock.rate(environ)
    deadline = time.monotonic() + max(timeout * rate, _SHORTEST_DEADLINE)
    said = ""
    while True:
        instances = _look(api, group)
        running = sum(_runs(instance) for instance in instances)
        if running >= group.size and len(instances) == group.size:
            tell(f"{running} of {group.size} VMs run")
            return
        capacity.check(group, instances, running, api)
        news = f"{running} of {group.size} VMs run{_reasons(instances)}"
        if news != said:
            tell(news)
            said = news
        if time.monotonic() >= deadline:
            raise StillWaiting(
                f"After {timeout / 60:g} minutes, {news}",
                why="Google has not given all machines yet; those that run cost money",
                fix="everything is kept: run Create again to go on waiting, Destroy to give up,"
                " or raise CAPACITY_TIMEOUT",
                setting="CAPACITY_TIMEOUT",
            )
        time.sleep(max(_POLL * rate, _SHORTEST_POLL))


def _look(api: GoogleApi, group: Group) -> list[dict[str, Any]]:
    """What the group says of its VMs.

    Raises:
        ClusterError: Google does not tell. The group is there, so this is no failed check of what
            could still be made.
    """
    try:
        return api.managed_instances(group.project, group.zone, group.name)
    except GoogleApiError as error:
        (problem,) = error.problems
        raise ClusterError(
            f"The group {group.name} was made, but whether its VMs run could not be found out",
            why=problem.why,
            fix="\n".join(
                filter(None, [problem.fix, "run Create again to go on, or Destroy to remove it"])
            ),
        ) from error


def _runs(instance: Mapping[str, Any]) -> bool:
    return instance.get("instanceStatus") == "RUNNING" and instance.get("currentAction") == "NONE"


def _reasons(instances: Sequence[Mapping[str, Any]]) -> str:
    """Google's own words on what keeps VMs from running, each once."""
    return "".join(f"; {capacity.words(error)}" for error in capacity.errors(instances))
