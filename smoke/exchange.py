"""What was asked and answered, and how much of that is written down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from smoke import places, redaction

_REFUSED: Final = 400


@dataclass(frozen=True)
class Exchange:
    """What was asked and answered; the bodies are for this process alone.

    Attributes:
        method: Of the request.
        path: As it is served here, percent-encoded.
        query: Of the request, decoded.
        body: Of the request.
        content_type: Of the request.
        status: Of the answer; 0 when there was none.
        answer: Its JSON; None where it is something else.
        size: Of the answer, in bytes.
        upload: The address of an upload's next part that the answer gives; "" mostly.
        began: When the request came, in seconds since the recording began.
        at: When it was answered, likewise.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    content_type: str
    status: int
    answer: dict[str, Any] | None = field(repr=False)
    size: int
    upload: str
    began: float
    at: float

    def row(self, secrets: frozenset[str]) -> dict[str, Any]:
        """What is written down."""
        return {
            "at": round(self.at, 3),
            "method": self.method,
            "path": redaction.text(self.path, secrets=secrets),
            "query": redaction.query(dict(self.query), secrets=secrets),
            "body": _shown(self.body, self.content_type, self.path, secrets),
            "status": self.status,
            "answer": redaction.document(self.answer, secrets=secrets),
            "bytes": self.size,
        }


@dataclass(frozen=True)
class Pair:
    """One request and both answers.

    Attributes:
        asked: What was asked of Google, with its answer.
        status: The simulation's.
        answer: The simulation's JSON; None where it is something else.
        upload: The address of an upload's next part that it gives; "" mostly.
    """

    asked: Exchange
    status: int
    answer: dict[str, Any] | None
    upload: str = ""


def document(content: bytes, kind: str, status: int, *, is_object: bool) -> dict[str, Any] | None:
    """An answer's JSON; None for the content of an object, which is nobody's business.

    Args:
        content: The answer.
        kind: Its content type.
        status: Its status: a refusal is no content.
        is_object: Whether the content of an object was asked for.
    """
    if (is_object and status < _REFUSED) or not kind.startswith("application/json"):
        return None
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _shown(body: bytes, content_type: str, path: str, secrets: frozenset[str]) -> Any:
    """A request's body as it is written down: JSON, or how much it was.

    Objects of Cloud Storage are never shown, JSON or not: one of them is Terraform's state.
    """
    if not body:
        return None
    if path.startswith("/upload/") or places.is_object(path, ()):
        return {"bytes": len(body)}
    if content_type.startswith("application/") and "json" in content_type:
        try:
            return redaction.document(json.loads(body), secrets=secrets)
        except ValueError:
            pass
    return {"bytes": len(body)}
