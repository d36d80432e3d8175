"""Requests that are gathered for some seconds and sent as one."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.provider import durations
from rehearsal.provider.failures import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass
class _Batch:
    items: list[Any] = field(default_factory=list)
    outcome: Future[Any] = field(default_factory=Future)


class Batches:
    """The provider's batching: on by default, a batch leaves 3 s after its first member came.

    `pause`: lets seconds of cloud time pass; raises `Cancelled` when Terraform was interrupted.
    """

    def __init__(
        self,
        pause: Callable[[float], None],
        cancel: threading.Event,
        block: Mapping[str, Any],
    ) -> None:
        self._pause = pause
        self._cancel = cancel
        self._enabled = block.get("enable_batching") is not False
        self._send_after = durations.seconds(block.get("send_after") or "3s")
        self._open: dict[str, _Batch] = {}
        self._guard = threading.Lock()

    def run(self, key: str, item: Any, send: Callable[[Sequence[Any]], Any]) -> Any:
        """Send an item together with others of the same key; all get the same result.

        A batch that fails is taken apart: each member is then sent alone, as provider 7.45.0 does.

        Raises:
            Exception: What `send` raised for this member.
        """
        if not self._enabled:
            return send([item])
        with self._guard:
            first = key not in self._open
            batch = self._open.setdefault(key, _Batch())
            batch.items.append(item)
        if first:
            self._lead(key, batch, send)
        try:
            return batch.outcome.result()
        except Exception:
            if len(batch.items) == 1 or self._cancel.is_set():
                raise
            return send([item])

    def _lead(self, key: str, batch: _Batch, send: Callable[[Sequence[Any]], Any]) -> None:
        """What the first member's thread does: wait for others, then send."""
        try:
            self._pause(self._send_after)
        except Cancelled as error:
            batch.outcome.set_exception(error)
        with self._guard:
            del self._open[key]
        if batch.outcome.done():
            return
        try:
            batch.outcome.set_result(send(tuple(batch.items)))
        except Exception as error:  # noqa: BLE001 - handed to every member's thread
            batch.outcome.set_exception(error)
