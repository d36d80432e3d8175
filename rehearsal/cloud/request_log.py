"""A record of what was asked and answered: one JSON object a line."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rehearsal.cloud.wire import Reply, Request


class RequestLog:
    """Appends to a file; several processes may share it. Header fields, hence tokens, stay out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def append(self, request: Request, reply: Reply | None) -> None:
        """Record an exchange; a reply of None is a dropped connection."""
        entry = {
            "time": request.now,
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "body": _readable(request.body),
            "status": None if reply is None else reply.status,
            "response": None if reply is None else _readable(reply.body),
        }
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _readable(body: dict[str, Any] | bytes | None) -> Any:
    """JSON as such, text as a string, anything else by its length."""
    if not isinstance(body, bytes):
        return body
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        pass
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"bytes": len(body)}
