"""Work that goes on beside other work, such as to ask somebody while packages are loaded."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def begin(work: Callable[[], T]) -> Future[T]:
    """Begin some work; whoever needs its result waits for it then, and gets its errors there.

    The program ends without it, unlike with a pool of threads: an interrupt need not wait for a
    request that nobody answers.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised for whoever waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
