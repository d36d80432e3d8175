"""What a Kubernetes API answers besides objects: refusals, lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.wire import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    415: "UnsupportedMediaType",
    422: "Invalid",
    500: "InternalError",
}


class Refusal(Exception):  # noqa: N818 - what an API says, not a fault
    """A refusal in the form of Kubernetes."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS[code]

    def reply(self) -> Reply:
        """The `Status` that says so."""
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return Reply(status=self.code, body=body)


def not_found(resource: str, name: str) -> Refusal:
    """There is no object of that name."""
    return Refusal(404, f'{resource} "{name}" not found')


def no_such_path() -> Refusal:
    """There is no such kind, or nothing at all at this path."""
    return Refusal(404, "the server could not find the requested resource")


def success() -> dict[str, Any]:
    """What a deletion answers."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
