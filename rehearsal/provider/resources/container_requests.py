"""Requests to Kubernetes Engine, and waiting for what they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.failures import Cancelled, GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resources import operations
from rehearsal.provider.resources.rest import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rehearsal.provider.api import Api

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_RESTING: Final = {"RUNNING": True, "DEGRADED": False, "ERROR": False, "RUNNING_WITH_ERROR": False}
"""The states in which nothing works on an object, and whether they are good."""


def get(api: Api, path: str) -> dict[str, Any] | None:
    """The object of a path; None when there is none.

    Raises:
        GoogleApiError: Google refused.
    """
    try:
        return send(api, "GET", path)
    except GoogleApiError as error:
        if error.code == NOT_FOUND:
            return None
        raise


def send(api: Api, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """A request that is sent once.

    Raises:
        GoogleApiError: Google refused.
    """
    return api.client("container", method, path, body)


def is_busy(error: GoogleApiError) -> bool:
    """Whether something else works on the cluster or pool, so that a request is too early."""
    return "failedPrecondition" in error.reasons


def send_until(  # noqa: PLR0913, PLR0917 - a request, and how long and why it is repeated
    api: Api,
    method: str,
    path: str,
    body: Any,
    limit: float,
    again: Callable[[GoogleApiError], bool],
) -> dict[str, Any]:
    """A request that begins an operation, sent again after some refusals.

    `limit`: for how long, in seconds of cloud time.

    Raises:
        GoogleApiError: Google refused to the end, or for another reason.
    """
    for wait in _waits(limit):
        try:
            return send(api, method, path, body)
        except GoogleApiError as error:
            if not again(error) or not api.sleep(wait):
                raise
    return send(api, method, path, body)


def _waits(limit: float) -> Iterator[float]:
    """The gaps between the tries of provider 7.45.0, seconds of cloud time (recorded traffic)."""
    wait, waited = _FIRST_WAIT, 0.0
    while waited + wait <= limit:
        yield wait
        waited += wait
        wait = min(wait * 2, _LONGEST_WAIT)


def wait(api: Api, operation: dict[str, Any], location: str, activity: str, limit: float) -> None:
    """Wait for an operation.

    Raises:
        OperationError: It ended with an error.
    """

    def look() -> dict[str, Any]:
        return api.client("container", "GET", f"{location}/operations/{operation['name']}")

    done = operations.poll(
        api, operation, look, activity, limit, is_done=lambda it: it.get("status") == "DONE"
    )
    if error := done.get("error"):
        words = str(error.get("message") or done.get("statusMessage"))
        # Of an operation that has ended at once, the provider says no more than its error.
        raise OperationError(
            words if done is operation else f"Error waiting for {activity}: {words}"
        )


def await_rest(api: Api, path: str, limit: float) -> str:
    """Wait until nothing works on an object any more.

    Raises:
        GoogleApiError: Google refused, or there is no such object.
    """
    state = ""
    for wait in _waits(limit):
        state = str(send(api, "GET", path).get("status"))
        if state in _RESTING:
            return state
        try:
            api.pause(wait)
        except Cancelled as error:
            raise ProviderError(f'"{path}" has state "{state}": {error}') from error
    raise ProviderError(f'"{path}" has state "{state}"')


def check_made(api: Api, path: str, what: str, limit: float) -> None:
    """Wait until a new object rests, and refuse one that came with an error."""
    state = await_rest(api, path, limit)
    if not _RESTING[state]:
        raise ProviderError(f'{what} was created in the error state "{state}"')


def rests(api: Api, path: str, limit: float) -> bool:
    """Wait until nothing works on an object any more; whether it is still there.

    Raises:
        GoogleApiError: Google refused.
    """
    try:
        await_rest(api, path, limit)
    except GoogleApiError as error:
        if error.code == NOT_FOUND:
            return False
        raise
    return True
