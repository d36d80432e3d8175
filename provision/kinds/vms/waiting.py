"""Waiting for what Google takes its time for: bounded, and never silent."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

from provision.errors import CapacityError, ClusterError, Problem, StillWaiting
from provision.google.api import GoogleApiError
from provision.kinds import shortage
from provision.kinds.vms.requests import Request
from provision.time import clock
from provision.time.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.kinds.shortage import Group

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a group."""
_QUEUE_POLL: Final = 15.0
"""Seconds of cloud time between two looks at requests."""
_REMINDER: Final = 300.0
"""Seconds of cloud time after which a wait without news is told again."""
_URL_POLL: Final = 15.0
"""Seconds of cloud time between two looks for notebooks' URLs."""
_URLS_AT_MOST: Final = 300.0
"""Seconds of cloud time that all notebooks' URLs together are waited for."""


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
    patience = Patience(timeout, _POLL, environ)
    said = ""
    while True:
        instances = _look(api, group)
        running = sum(_runs(instance) for instance in instances)
        if running >= group.size and len(instances) == group.size:
            tell(f"{running} of {group.size} {group.members} run")
            return
        shortage.check(group, instances, running, api)
        news = f"{running} of {group.size} {group.members} run{_reasons(instances)}"
        if news != said:
            tell(news)
            said = news
        if patience.is_over:
            raise StillWaiting(
                f"After {timeout / 60:g} minutes, {news}",
                why="Google has not given all machines yet; those that run cost money",
                fix="everything is kept: run Create again to go on waiting, Destroy to give up,"
                " or raise CAPACITY_TIMEOUT",
                setting="CAPACITY_TIMEOUT",
            )
        patience.pause()


def for_requests(  # noqa: PLR0913 - as `for_vms`, and which requests
    api: GoogleApi,
    group: Group,
    names: Collection[str],
    *,
    timeout: float,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    """Wait until requests for flex start VMs are granted.

    Args:
        api: Google.
        group: Whose requests they are.
        names: The requests.
        timeout: Seconds of cloud time to wait at most (CAPACITY_TIMEOUT).
        environ: For the clock's rate.
        tell: Takes a sentence whenever there is news, and now and then without.

    Raises:
        CapacityError: One has failed or was cancelled.
        ClusterError: Google does not tell.
        StillWaiting: They are not all granted by then; they stay in Google's queue.
    """
    patience = Patience(timeout, _QUEUE_POLL, environ)
    said, told_at = "", 0.0
    while True:
        requests = [one for one in look_at_requests(api, group) if one.name in names]
        _refuse(group, requests, api)
        waiting = [one for one in requests if one.is_open]
        if not waiting:
            return
        news = "; ".join(f"{one.words}{_reason(one)}" for one in waiting)
        if news != said or patience.passed - told_at >= _REMINDER:
            tell(f"{age_in_words(waiting, environ)}: {news}")
            said, told_at = news, patience.passed
        if patience.is_over:
            raise StillWaiting.of([_still(group, one, timeout, environ, api) for one in waiting])
        patience.pause()


def look_at_requests(api: GoogleApi, group: Group) -> list[Request]:
    """A group's requests for flex start VMs.

    Raises:
        ClusterError: Google does not tell.
    """
    with _told(f"the requests of the group {group.name} stand"):
        return [Request.of(document) for document in api.resize_requests(group.path)]


def age_in_words(requests: Sequence[Request], environ: Mapping[str, str]) -> str:
    """How long the oldest of some requests has been there."""
    created = min(request.created for request in requests)
    seconds = clock.cloud_seconds(max(0.0, time.time() - created), environ)
    return f"Since {in_words(seconds)}"


def in_words(seconds: float) -> str:
    """A span of time for people, by its two greatest units."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"


def for_urls(
    look: Callable[[], Mapping[str, str | None]],
    wanted: Collection[str],
    *,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
) -> dict[str, str]:
    """Wait for the notebooks' URLs of all VMs at once.

    Args:
        look: Asks Google once for all VMs: name to URL, or None where there is none yet.
        wanted: The VMs that have a notebook.
        environ: For the clock's rate.
        tell: Takes a sentence whenever there is news.

    Returns:
        The URLs that were there in time, by VM.
    """
    patience = Patience(_URLS_AT_MOST, _URL_POLL, environ)
    said = -1
    while True:
        urls = {name: url for name, url in look().items() if url and name in wanted}
        if len(urls) != said:
            tell(f"{len(urls)} of {len(wanted)} notebooks have their URL")
            said = len(urls)
        if len(urls) == len(wanted) or patience.is_over:
            return urls
        patience.pause()


def _look(api: GoogleApi, group: Group) -> list[dict[str, Any]]:
    """What the group says of its VMs.

    Raises:
        ClusterError: Google does not tell.
    """
    with _told(f"the VMs of the group {group.name} run"):
        return api.managed_instances(group.project, group.zone, group.name)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
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


def _runs(instance: Mapping[str, Any]) -> bool:
    return instance.get("instanceStatus") == "RUNNING" and instance.get("currentAction") == "NONE"


def _reasons(instances: Sequence[Mapping[str, Any]]) -> str:
    """Google's own words on what keeps VMs from running, each once."""
    return "".join(f"; {shortage.words(error)}" for error in shortage.errors(instances))


def _reason(request: Request) -> str:
    return "".join(f"; {line}" for line in dict.fromkeys(map(shortage.words, request.errors)))


def _refuse(group: Group, requests: Sequence[Request], api: GoogleApi) -> None:
    """Raise if a request has ended without its VMs."""
    ended = [one for one in requests if one.state in ("FAILED", "CANCELLED")]
    problems: list[Problem] = []
    for request in ended:
        standing = shortage.Standing(
            words=request.words,
            after_stockout="run Create again to ask anew: this may pass",
            after_quota="once it is granted, run Create again to ask anew",
        )
        explained = shortage.explain(group, request.errors, standing, api)
        problems += explained or [
            Problem(
                what=request.words[0].upper() + request.words[1:],
                why="\n".join(map(shortage.words, request.errors)) or "Google gives no reason",
                fix="run Create again to ask anew, for what is missing; or Destroy to give up",
            )
        ]
    if problems:
        raise CapacityError.of(problems)


def _still(
    group: Group, request: Request, timeout: float, environ: Mapping[str, str], api: GoogleApi
) -> Problem:
    """That a request still waits, why, and what one can do."""
    kept = (
        "everything is kept, and the request stays in Google's queue: run Create again to go on"
        " waiting, Status to look at it, Destroy to give up, or raise CAPACITY_TIMEOUT"
    )
    advice = [kept]
    standing = shortage.Standing(
        words=request.words,
        after_stockout="",
        after_quota="once it is granted the request goes on by itself",
        end="",
    )
    advice += [it.fix for it in shortage.explain(group, request.errors, standing, api)]
    age = age_in_words([request], environ).lower()
    return Problem(
        setting="CAPACITY_TIMEOUT",
        what=f"After {timeout / 60:g} minutes, {request.words}, {age}",
        why="\n".join(dict.fromkeys(map(shortage.words, request.errors)))
        or "Google does not say why; flex start grants all VMs of a request at once",
        fix="\n".join(advice),
    )
