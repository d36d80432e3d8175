"""What clusters and pools of Kubernetes Engine have in common: requests, waiting, shared lists."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

from rehearsal.provider.api import Api
from rehearsal.provider.failures import Cancelled, GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.rest import NOT_FOUND, Rest, place
from rehearsal.provider.resources.shapes import Rule, Scope, is_zero

Request = tuple[str, str, dict[str, Any] | None]  # method, path, body

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_RESTING: Final = {"RUNNING": True, "DEGRADED": False, "ERROR": False, "RUNNING_WITH_ERROR": False}
"""The states in which nothing works on an object, and whether they are good."""
_FRESH: Final = 30.0  # for how many seconds of ours a list counts, as in the real provider

_WORDS: Final = {"TRUE": True, "FALSE": False}
TRUTH: Final = Rule(
    expand=lambda value, _: _WORDS.get(value),
    flatten=lambda value, _: "" if value is None else str(value).upper(),
)
"""A boolean that the provider writes as a word, so that it can be unset."""


def is_busy(error: GoogleApiError) -> bool:
    """Whether something else works on the cluster or pool, so that a request is too early."""
    return "failedPrecondition" in error.reasons


class Gke(Rest):
    """A type of Kubernetes Engine's; its label in operations is "GKE cluster" or "GKE NodePool"."""

    def there(self, api: Api, path: str) -> bool:
        """Whether there is an object at a path."""
        try:
            self.ask(api, "GET", path)
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return False
            raise
        return True

    def refuse_second(self, where: Scope) -> None:
        """See that there is no such object yet."""
        if self.there(where.api, self.path(where)):
            raise ProviderError(f"resource - {self.path(where)} - already exists")

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        """One whose creation was interrupted is looked for only after that has ended."""
        if not is_zero(name := where.state.get("operation")):
            self.wait(where, {"name": name}, "create", f"resuming {self.label}")
        return super().look(where, path)

    def wait(self, where: Scope, answer: dict[str, Any], action: str, activity: str = "") -> None:
        """Wait for an operation; OperationError if it ended with one."""
        activity = activity or f"{action.removesuffix('e')}ing {self.label}"
        at = place("projects/{project}/locations/{location}/operations", where)

        def look() -> dict[str, Any]:
            return self.ask(where.api, "GET", f"{at}/{answer['name']}")

        done = operations.poll(
            where.api,
            answer,
            look,
            activity,
            self.limit(where, action),
            is_done=lambda it: it.get("status") == "DONE",
        )
        if error := done.get("error"):
            words = str(error.get("message") or done.get("statusMessage"))
            # Of an operation that has ended at once, the provider says no more than its error.
            raise OperationError(
                words if done is answer else f"Error waiting for {activity}: {words}"
            )

    def limit(self, where: Scope, action: str) -> float:
        """Seconds of cloud time that an action may take."""
        return operations.timeout(where.state, action, self.shape.of)

    def send_until(
        self, api: Api, request: Request, limit: float, again: Callable[[GoogleApiError], bool]
    ) -> dict[str, Any]:
        """A request that begins an operation, sent again so many seconds after some refusals."""
        for wait in _waits(limit):
            try:
                return self.ask(api, *request)
            except GoogleApiError as error:
                if not again(error) or not api.sleep(wait):
                    raise
        return self.ask(api, *request)

    def await_rest(self, api: Api, path: str, limit: float) -> str:
        """Wait until nothing works on an object any more; its state then."""
        state = ""
        for wait in _waits(limit):
            state = str(self.ask(api, "GET", path).get("status"))
            if state in _RESTING:
                return state
            try:
                api.pause(wait)
            except Cancelled as error:
                raise ProviderError(f'"{path}" has state "{state}": {error}') from error
        raise ProviderError(f'"{path}" has state "{state}"')

    def check_made(self, where: Scope, what: str) -> None:
        """Wait until a new object rests, and refuse one that came with an error."""
        state = self.await_rest(where.api, self.path(where), self.limit(where, "create"))
        if not _RESTING[state]:
            raise ProviderError(f'{what} was created in the error state "{state}"')

    def rests(self, where: Scope) -> bool:
        """Wait until nothing works on the object before it goes; whether it is still there."""
        try:
            self.await_rest(where.api, self.path(where), self.limit(where, "delete"))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return False
            raise
        return True


def _waits(limit: float) -> Iterator[float]:
    """The gaps between the tries of provider 7.45.0, seconds of cloud time (recorded traffic)."""
    wait, waited = _FIRST_WAIT, 0.0
    while waited + wait <= limit:
        yield wait
        waited += wait
        wait = min(wait * 2, _LONGEST_WAIT)


class _Lists:
    """The lists that one provider has read: clusters' pools, zones' instance groups.

    Provider 7.45.0 asks for each list once and takes what it says for half a minute, so that
    reading fifty pools costs no more requests than reading one; a change of a pool makes it ask
    again.
    """

    def __init__(self, api: Api) -> None:
        self._send = api.client
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Any]] = {}

    def pool(self, path: str) -> dict[str, Any] | None:
        """A pool by its path; None when there is none."""
        found: dict[str, Any] | None = self._found(path, self._read_pools)
        return found

    def size(self, url: str) -> int | None:
        """How many nodes a group of the given link is to have; None when there is no such group."""
        found: int | None = self._found(links.relative(url), self._read_groups)
        return found

    def sizes(self, urls: list[str]) -> list[int]:
        """How many nodes the groups are to have that are there."""
        return [size for size in map(self.size, urls) if size is not None]

    def _found(self, path: str, read: Callable[[str], None]) -> Any:
        with self._lock:
            if self._fresh(path) is None:
                read(path.rpartition("/")[0])
            return self._fresh(path)

    def _fresh(self, path: str) -> Any:
        since, value = self._kept.get(path, (0.0, None))
        return value if time.monotonic() - since < _FRESH else None

    def _read_pools(self, parent: str) -> None:
        now = time.monotonic()
        listed = self._send("container", "GET", parent).get("nodePools") or []
        self._kept |= {f"{parent}/{it['name']}": (now, it) for it in listed}

    def _read_groups(self, parent: str) -> None:
        now, query = time.monotonic(), dict[str, str]()
        while True:
            answer = self._send("compute", "GET", parent, query=query)
            for it in answer.get("items") or []:
                self._kept[f"{parent}/{it['name']}"] = (now, int(it["targetSize"]))
            if not (token := answer.get("nextPageToken")):
                return
            query = {"pageToken": token}

    def forget(self, path: str, urls: list[str]) -> None:
        """Ask again for a pool, and for its groups, the next time."""
        with self._lock:
            for each in (path, *map(links.relative, urls)):
                self._kept.pop(each, None)


_LISTS: WeakKeyDictionary[Api, _Lists] = WeakKeyDictionary()
_GUARD = threading.Lock()


def lists(api: Api) -> _Lists:
    """The lists of a provider."""
    with _GUARD:
        return _LISTS.setdefault(api, _Lists(api))


def filled(state: State, name: str) -> bool:
    """Whether an attribute has a value that is known."""
    return state.get(name) not in (None, UNKNOWN, "", [])
