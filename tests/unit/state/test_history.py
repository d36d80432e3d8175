import json
from decimal import Decimal

import pytest

from provision import __version__
from provision.state import history
from tests.unit.memory_folder import MemoryFolder

HOUR = 3600.0


def _add(folder: MemoryFolder, now: float, *, hourly: str | None, ended: str = "done") -> None:
    history.add(folder, "Create", now=now, ended=ended, hourly=hourly)


def test_each_run_adds_a_line_with_who_and_which_version() -> None:
    folder = MemoryFolder()
    assert history.of(folder) == ()
    _add(folder, 0.0, hourly="2.5")
    _add(folder, HOUR, hourly=None, ended="no-capacity")
    first, second = (it.done for it in history.of(folder))
    assert (first.at, first.action, first.version) == (
        "1970-01-01T00:00:00Z",
        "Create",
        __version__,
    )
    assert "@" in first.who
    assert second.ended == "no-capacity"


def test_what_it_has_cost_follows_the_price_from_each_line_on() -> None:
    folder = MemoryFolder()
    _add(folder, 0.0, hourly="2")
    _add(folder, HOUR, hourly="10")
    _add(folder, 2 * HOUR, hourly=None)
    spent = history.in_all(history.of(folder), 3 * HOUR)
    assert spent is not None
    assert (spent.usd, spent.since) == (Decimal("22.00"), "1970-01-01T00:00:00Z")

    unknown = MemoryFolder()
    _add(unknown, 0.0, hourly=None)
    assert history.in_all(history.of(unknown), HOUR) is None
    assert history.in_all((), HOUR) is None
    slow = history.in_all(history.of(folder), 3 * HOUR, lambda seconds: 2 * seconds)
    assert slow is not None
    assert slow.usd == 2 * spent.usd


def test_while_a_run_is_at_work_the_higher_price_counts_from_its_begin_on() -> None:
    folder = MemoryFolder()
    history.add(folder, "Create", now=2 * HOUR, began=HOUR, ended="done", hourly="6")
    history.add(folder, "Create", now=4 * HOUR, began=3 * HOUR, ended="done", hourly="2")
    spent = history.in_all(history.of(folder), 5 * HOUR)
    assert spent is not None
    assert (spent.usd, spent.since) == (Decimal("20.00"), "1970-01-01T01:00:00Z")


def test_the_list_is_bounded_and_its_first_line_stays() -> None:
    folder = MemoryFolder()
    for hour in range(history._MOST + 10):
        _add(folder, hour * HOUR, hourly="1")
    lines = history.of(folder)
    assert len(lines) == history._MOST
    assert lines[0].done.at == "1970-01-01T00:00:00Z"
    spent = history.in_all(lines, (history._MOST + 10) * HOUR)
    assert spent is not None
    assert spent.usd == history._MOST + 10


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        '{"lines": 7}',
        json.dumps({"lines": [{"at": "soon", "action": "Create"}]}),
        json.dumps(
            {
                "lines": [
                    {
                        "at": "2026-11-28T20:00:00Z",
                        "action": "Create\\u001b[2J",
                        "version": "1",
                        "who": "a@b",
                        "ended": "done",
                    }
                ]
            }
        ),
    ],
)
def test_what_somebody_has_damaged_is_left_out(damaged: str) -> None:
    folder = MemoryFolder()
    folder.write("history.json", damaged, "application/json")
    assert history.of(folder) == ()
    _add(folder, 0.0, hourly="1")
    assert len(history.of(folder)) == 1
