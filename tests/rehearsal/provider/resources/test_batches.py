from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.failures import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


pytestmark = pytest.mark.loopback


@pytest.fixture
def patient(environ: dict[str, str]) -> Api:
    """An api whose batches gather for three tenths of a second."""
    return Api({}, {**environ, "CLOUD_CLOCK_RATE": "0.1"})


def together(api: Api, items: Sequence[str], send: Callable[[Sequence[str]], Any]) -> list[Any]:
    barrier = threading.Barrier(len(items))

    def one(item: str) -> Any:
        barrier.wait()
        return api.batches.run("key", item, send)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(one, items))


def test_what_comes_together_is_sent_as_one(patient: Api) -> None:
    sent = []

    def send(items: Sequence[str]) -> str:
        sent.append(sorted(items))
        return "answer"

    assert together(patient, ["a", "b", "c"], send) == ["answer"] * 3
    assert sent == [["a", "b", "c"]]


def test_different_keys_are_different_batches(api: Api) -> None:
    sent: list[Sequence[str]] = []
    api.batches.run("one", "a", sent.append)
    api.batches.run("two", "b", sent.append)
    assert sent == [("a",), ("b",)]


def test_batching_can_be_switched_off(connect: Callable[..., Api]) -> None:
    api = connect(batching=[{"enable_batching": False, "send_after": None}])
    sent: list[Sequence[str]] = []
    api.batches.run("key", "a", sent.append)
    assert sent == [["a"]]


def test_a_batch_that_fails_is_taken_apart(patient: Api) -> None:
    def send(items: Sequence[str]) -> str:
        if "bad" in items:
            raise ValueError(f"{sorted(items)}")
        return items[0]

    barrier = threading.Barrier(2)

    def one(item: str) -> Any:
        barrier.wait()
        return patient.batches.run("key", item, send)

    with ThreadPoolExecutor(2) as pool:
        good, bad = pool.submit(one, "good"), pool.submit(one, "bad")
        assert good.result() == "good"
        with pytest.raises(ValueError, match=r"\['bad'\]"):
            bad.result()


def test_an_interrupt_sends_nothing_more(patient: Api) -> None:
    patient.cancel.set()
    sent: list[Sequence[str]] = []
    with pytest.raises(Cancelled):
        patient.batches.run("key", "a", sent.append)
    assert sent == []
