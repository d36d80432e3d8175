"""What was asked and answered, and how much of that is written down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from smoke import places, redaction

_REFUSED: Final = 400


@dataclass(frozen=True)
class Exchange:
    """What was asked and answered; the bodies are for this process alone."""

    method: str
    path: str  # as it is served here, percent-encoded
    query: tuple[tuple[str, str], ...]  # of the request, decoded
    body: bytes = field(repr=False)
    content_type: str
    status: int  # of the answer; 0 when there was none
    answer: dict[str, Any] | None = field(repr=False)  # its JSON; None where it is something else
    size: int  # of the answer, in bytes
    upload: str  # the address of an upload's next part that the answer gives; "" mostly
    began: float  # when the request came, in seconds since the recording began
    at: float  # when it was answered, likewise

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
    """One request and both answers."""

    asked: Exchange  # what was asked of Google, with its answer
    status: int  # the simulation's
    answer: dict[str, Any] | None  # the simulation's JSON; None where it is something else
    upload: str = ""  # the address of an upload's next part that it gives; "" mostly


def document(content: bytes, kind: str, status: int, *, is_object: bool) -> dict[str, Any] | None:
    """An answer's JSON; None for the content of an object, which is nobody's business."""
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
