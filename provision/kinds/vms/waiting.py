"""Waiting for resize requests and for notebooks, with a timeout and regular progress messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Alternatives, CapacityError, Problem, StillWaiting
from provision.google import refusals
from provision.kinds import machines, shortage
from provision.kinds.vms.resize_requests import ResizeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.spec.pools import Group
    from provision.time.clock import Clock
    from provision.time.progress import Progress

_QUEUE_POLL: Final = 15.0
"""Poll interval for resize requests, in seconds of cloud time."""
_URL_POLL: Final = 15.0
"""Poll interval for the notebooks' URLs, in seconds of cloud time."""
_URLS_AT_MOST: Final = 300.0
"""The longest wait for the URLs of all notebooks together, in seconds of cloud time."""


def for_requests(
    api: GoogleApi,
    group: Group,
    names: Collection[str],
    *,
    timeout: float,
    progress: Progress,
) -> None:
    """Wait until resize requests are granted.

    `timeout`: the longest wait in seconds of cloud time (CAPACITY_TIMEOUT).

    Raises:
        CapacityError: A request failed or was cancelled.
        ClusterError: Google does not return the requests.
        StillWaiting: Not all are granted in time; they stay in Google's queue.
    """
    with progress.stage(StageName.REQUESTS, OnInterrupt.STAYS_QUEUED) as stage:
        deadline = stage.deadline(timeout, _QUEUE_POLL)
        said = ""
        while True:
            requests = [one for one in look_at_requests(api, group) if one.name in names]
            _refuse(group, requests, api)
            waiting = [one for one in requests if one.is_open]
            if not waiting:
                stage.counts(f"{len(requests)} of {len(names)} requests granted")
                return
            news = "; ".join(f"{one.words}{_reason(one)}" for one in waiting)
            aged = f"{age(waiting, progress.clock)}: {news}"
            # That a request gets older is no news, but the next sign of life says how old it is.
            (stage.news if news != said else stage.counts)(aged)
            said = news
            if deadline.is_over:
                raise StillWaiting.of(
                    [_still(group, one, timeout, progress.clock, api) for one in waiting]
                )
            deadline.pause()


def look_at_requests(api: GoogleApi, group: Group) -> list[ResizeRequest]:
    """A group's resize requests.

    Raises:
        ClusterError: Google does not return them.
    """
    with machines.told(f"the resize requests of the group {group.name} are granted"):
        return [ResizeRequest.of(document) for document in api.resize_requests(group.path)]


def age(requests: Sequence[ResizeRequest], clock: Clock) -> str:
    """How long the oldest of some requests has been waiting."""
    created = min(request.created for request in requests)
    return f"For {words.duration(clock.since(created))}"


def for_urls(
    look: Callable[[], Mapping[str, str | None]],
    wanted: Collection[str],
    *,
    progress: Progress,
) -> dict[str, str]:
    """Wait for the notebooks' URLs of all VMs at once.

    `look`: asks Google once for all VMs: name of the VM -> URL, or None if there is none yet.
    Returns name of the VM -> URL, for those that had one in time.
    """
    with progress.stage(StageName.URLS) as stage:
        deadline = stage.deadline(_URLS_AT_MOST, _URL_POLL)
        while True:
            urls = {name: url for name, url in look().items() if url and name in wanted}
            ends = len(urls) == len(wanted) or deadline.is_over
            news = f"{len(urls)} of {len(wanted)} notebooks have their URL"
            (stage.counts if ends else stage.news)(news)
            if ends:
                return urls
            deadline.pause()


def _reason(request: ResizeRequest) -> str:
    lines = (
        refusals.in_short(refusals.words(error), str(error.get("code", "")))
        for error in request.errors
    )
    return "".join(f"; {line}" for line in dict.fromkeys(lines))


def _refuse(group: Group, requests: Sequence[ResizeRequest], api: GoogleApi) -> None:
    """Raise if a request failed or was cancelled."""
    ended = [one for one in requests if one.state in ("FAILED", "CANCELLED")]
    problems: list[Problem] = []
    for request in ended:
        texts = shortage.RefusalTexts(
            words=request.words,
            after_stockout="run Create again for a new request: machines may become available",
            after_quota="once it is granted, run Create again for a new request",
        )
        explained = shortage.explain(group, request.errors, texts, api)
        problems += explained or [
            Problem(
                code=Code.CAPACITY_REFUSED,
                what=request.words[0].upper() + request.words[1:],
                why="\n".join(map(refusals.words, request.errors)) or "Google gives no reason",
                fix="run Create again to request the missing VMs, or Destroy to give up",
            )
        ]
    if problems:
        raise CapacityError.of(problems)


def _still(
    group: Group, request: ResizeRequest, timeout: float, clock: Clock, api: GoogleApi
) -> Problem:
    """The problem of a request that is still waiting."""
    kept = (
        "everything is kept, and the request stays in Google's queue: run Create again to keep"
        " waiting, Status to look at it, or Destroy to give up; a higher CAPACITY_TIMEOUT waits"
        " longer"
    )
    advice = [kept]
    texts = shortage.RefusalTexts(
        words=request.words,
        after_stockout="",
        after_quota="once it is granted, Google fulfills the request",
        end="",
    )
    explained = shortage.explain(group, request.errors, texts, api)
    advice += [it.fix for it in explained]
    since = age([request], clock).lower()
    # What does not pass by waiting is what a program has to know.
    lasting = [it.code for it in explained if it.code and not it.code.is_retryable]
    return Problem(
        code=lasting[0] if lasting else Code.WAITING,
        setting="CAPACITY_TIMEOUT",
        what=f"After {timeout / 60:g} minutes, {request.words}, {since} in total",
        why="\n".join(dict.fromkeys(map(refusals.words, request.errors)))
        or "Google does not say why; flex start grants all VMs of a request at once",
        fix="\n".join(advice),
        alternatives=Alternatives(
            zones=tuple(z for it in explained for z in it.alternatives.zones)
        ),
    )
