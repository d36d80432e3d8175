"""Who does not look at the terminal is told what a run comes to, by NOTIFY (ADR 104).

What is told are the milestones of `--output ndjson`, one request each, from a thread of its own:
nothing waits for who is told, but for some seconds at the end.
"""

from __future__ import annotations

import datetime as dt
import json
import queue
import threading
import time
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from provision import __version__, words
from provision.codes import Code
from provision.documents.events import Milestone
from provision.documents.status import EndedBy
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Problem
from provision.screens.progress import TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from provision.documents.events import WaitingEvent
    from provision.documents.job import Job
    from provision.documents.status import End
    from provision.time.clock import Clock

_SLACK: Final = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
"""The hosts of Slack's incoming webhooks, which take a text alone (docs.slack.dev, "Sending
messages using incoming webhooks"); so does Google Chat's ("Send messages to Google Chat with
incoming webhooks")."""
_GOOGLE_CHAT: Final = "chat.googleapis.com"
_TIMEOUT: Final = (3.0, 4.0)  # seconds for a connection, and for an answer
_PATIENCE: Final = 5.0  # seconds for which the end of a run waits until the last is told

_SOON: Final = 1800.0  # seconds before something ends at which that is told
_MARKS: Final = (1800.0, 7200.0, 28800.0, *(days * 86400.0 for days in range(1, 60)))
"""The seconds after which a wait is told of: half an hour, 2 and 8 hours, and then daily."""
_FOR_GOOD: Final = frozenset({EndedBy.RUN, EndedBy.RESERVATION})
"""What ends machines and does not bring them back."""
_NO_WAITS: Final = frozenset({OnInterrupt.LEAVES_REST, OnInterrupt.ENDS_TEST})


class Sender:
    """Sends milestones to a URL; `fails` gets a note at the first one that can't be told."""

    def __init__(self, url: str, fails: Callable[[Problem], object]) -> None:
        self._url = url
        self._fails = fails
        self._told: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def tell(self, milestone: Mapping[str, Any]) -> None:
        """Send a milestone soon; it has been masked as all that is shown."""
        self._told.put(milestone)
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait some seconds for what is not sent yet."""
        if self._thread is None:
            return
        self._told.put(None)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self._failed(f"it did not answer within {_PATIENCE:g} seconds")

    def _send_all(self) -> None:
        import requests  # noqa: PLC0415 - 0.1 s, beside what the run does

        with requests.Session() as session:
            while (milestone := self._told.get()) is not None:
                try:
                    answer = session.post(
                        self._url,
                        data=_body(self._url, milestone),
                        headers={
                            "Content-Type": "application/json; charset=utf-8",
                            "User-Agent": f"aiinfra-cluster/{__version__}",
                        },
                        timeout=_TIMEOUT,
                        # The URL that it leads to is not the one that somebody has trusted.
                        allow_redirects=False,
                        stream=True,
                    )
                    answer.close()
                except requests.exceptions.SSLError:
                    self._failed("its certificate is not trusted")
                except (requests.RequestException, OSError, ValueError) as error:
                    # Not its words: they have the URL.
                    self._failed(f"it could not be reached ({type(error).__name__})")
                else:
                    if not 200 <= answer.status_code < 300:  # noqa: PLR2004 - those of HTTP
                        self._failed(f"it answered {answer.status_code}")

    def _failed(self, why: str) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        self._fails(
            Problem(
                code=Code.NOTE,
                setting="NOTIFY",
                what=f"{urlsplit(self._url).hostname} could not be told; the run goes on",
                why=why,
                fix="see that the URL is still the one of the webhook, that this machine reaches"
                " its host (HTTPS_PROXY, CA_BUNDLE), and that it answers with 200",
            )
        )


def _body(url: str, milestone: Mapping[str, Any]) -> bytes:
    """What is sent: the text for a chat, which nobody's words may format, else all of it."""
    host, text = urlsplit(url).hostname, str(milestone["text"])
    if host in _SLACK:
        for letter, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(letter, escaped)
    document = {"text": text} if host in {*_SLACK, _GOOGLE_CHAT} else milestone
    return json.dumps(document).encode("utf-8")


class Watch:
    """What is due while a run goes on: a wait that is long, an end that is near, an amount."""

    def __init__(self) -> None:
        self._told: set[tuple[Milestone, str]] = set()
        self._ends: dict[str, float] = {}

    def learn(self, ends: Iterable[End], clock: Clock) -> None:
        """What ends automatically, and when, by our own clock."""
        left = {it.what: it.first_seconds for it in ends if it.how in _FOR_GOOD}
        now = time.monotonic()
        self._ends = {what: now + clock.wall(it) for what, it in left.items() if it}

    def due(
        self,
        waits: WaitingEvent | None,
        job: Job | None,
        clock: Clock,
    ) -> Iterator[tuple[Milestone, str, str]]:
        """Each milestone that is reached now, once: its words, and what to do next."""
        found = chain(_long(waits, job), self._near(job, clock), _amounts(job))
        for milestone, once, told, fix in found:
            if (milestone, once) not in self._told:
                self._told.add((milestone, once))
                yield milestone, told, fix

    def _near(self, job: Job | None, clock: Clock) -> Iterator[_Due]:
        now, fix = time.monotonic(), "save their data: what is on their disks goes with them"
        ends = {what: (clock.cloud(at - now), fix) for what, at in self._ends.items()}
        if job is not None and job.ends and not job.state.is_over:
            left = clock.until(dt.datetime.fromisoformat(job.ends).timestamp())
            fix = "a longer --time is for the next Run; the program gets SIGTERM before"
            ends[f"the time of {job.name}"] = (left, fix)
        for what, (left, fix) in ends.items():
            if 0 < left <= _SOON:
                yield (
                    Milestone.ENDS_SOON,
                    what,
                    f"{what}: {words.duration(left)} until the end",
                    fix,
                )


_Due = tuple[Milestone, str, str, str]
"""A milestone, what it is told once for, its words, and what to do next."""


def _long(waits: WaitingEvent | None, job: Job | None) -> Iterator[_Due]:
    """A wait that goes on; a job that runs is none."""
    if waits is None or waits.stage is None or waits.on_interrupt in _NO_WAITS:
        return
    of_job = waits.stage is StageName.JOB
    passed = max((it for it in _MARKS if it <= waits.passed), default=None)
    if passed is None or (of_job and (job is None or job.attempt)):
        return
    told = f"{TITLES[waits.stage]}: still waits after {words.duration(waits.passed)}"
    most = f" of {words.duration(waits.most)}" if waits.most else ""
    news = f": {waits.words}" if waits.words else ""
    fix = "aiinfra Status shows it; aiinfra Destroy gives it up"
    if of_job and job is not None:
        fix = f"aiinfra Jobs {job.name} shows it; aiinfra Cancel {job.name} gives it up"
    yield Milestone.WAITING, f"{waits.stage} {passed}", f"{told}{most}{news}", fix


def _amounts(job: Job | None) -> Iterator[_Due]:
    """The greatest of 10, 20, 50, 100, 200, ... USD that a job has cost."""
    if job is None or job.cost is None:
        return
    steps = (factor * 10**power for power in count(1) for factor in (1, 2, 5))
    passed = 0
    for step in steps:
        if step > job.cost:
            break
        passed = step
    if passed and not job.state.is_over:
        told = f"{job.name} has cost more than ${passed:,}: ≈ ${job.cost:,.2f} so far"
        yield Milestone.AMOUNT, f"{job.name} {passed}", told, f"aiinfra Cancel {job.name} ends it"
