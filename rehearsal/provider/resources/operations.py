"""Waiting for Google's long-running operations, the way provider 7.45.0 does.

An answer that is done already is not asked after. Else the operation is read at once, and again
after each poll interval; the API's own `wait` is never used.
"""

from collections.abc import Callable
from typing import Any

from rehearsal.provider import durations, schema
from rehearsal.provider.api import Api
from rehearsal.provider.failures import Cancelled, GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import State
from rehearsal.provider.resources import links

_NOT_FOUND = 404


def timeout(state: State, action: str, of: str) -> float:
    """Seconds of cloud time that the `timeouts` block, or else the type, gives an action."""
    given = (state.get("timeouts") or {}).get(action)
    return durations.seconds(given or schema.load("resources", of).timeouts[action])


def compute(
    api: Api, operation: dict[str, Any], project: str, activity: str, limit: float
) -> dict[str, Any]:
    """Wait for an operation of Compute Engine; OperationError if it ended with errors."""

    def look() -> dict[str, Any]:
        return api.plain("compute", "GET", f"projects/{project}/{_path(operation)}")

    done = poll(
        api, operation, look, activity, limit, is_done=lambda it: it.get("status") == "DONE"
    )
    if errors := done.get("error", {}).get("errors"):
        raise OperationError("".join(f"{error.get('message', '')}\n" for error in errors))
    return done


def named(
    api: Api, service: str, operation: dict[str, Any], activity: str, limit: float
) -> dict[str, Any]:
    """Wait for an operation of the newer APIs by its name, interrupt or not; OperationError."""

    def look() -> dict[str, Any]:
        return api.plain(service, "GET", str(operation["name"]))

    done = poll(
        api, operation, look, activity, limit, is_done=lambda it: bool(it.get("done")), deaf=True
    )
    if error := done.get("error"):
        raise OperationError(f"Error code {error.get('code')}, message: {error.get('message')}")
    return done


def poll(  # noqa: PLR0913 - the parts of a wait, by name
    api: Api,
    first: dict[str, Any],
    look: Callable[[], dict[str, Any]],
    activity: str,
    limit: float,
    *,
    is_done: Callable[[dict[str, Any]], bool],
    deaf: bool = False,
) -> dict[str, Any]:
    """Look until something is done; one that cannot be found yet is looked for again."""
    if is_done(first):
        return first
    waited = 0.0
    while waited <= limit:
        try:
            now = look()
        except GoogleApiError as error:
            if error.code != _NOT_FOUND:
                raise
        else:
            if is_done(now):
                return now
        try:
            api.pause(api.poll_interval, deaf=deaf)
        except Cancelled as error:
            raise ProviderError(
                f"Error waiting for {activity}: error while retrieving operation: {error}"
            ) from error
        waited += api.poll_interval
    raise ProviderError(
        f"Error waiting for {activity}: timeout while waiting for state to become 'DONE'"
        f" (last state: 'RUNNING', timeout: {durations.text(limit)})"
    )


def _path(operation: dict[str, Any]) -> str:
    """Where an operation of Compute Engine is, by its own zone or region."""
    for place in ("zone", "region"):
        if at := operation.get(place):
            return f"{place}s/{links.name(at)}/operations/{operation['name']}"
    return f"global/operations/{operation['name']}"
