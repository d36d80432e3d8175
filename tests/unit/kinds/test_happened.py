"""What Google has done to machines within a day, and what is a storm."""

import datetime as dt
from typing import Any, cast

from provision.kinds import happened
from provision.kinds.happened import Event
from provision.time.clock import Clock
from tests.unit.kinds.cases import having

ZONE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/"
PLACE: Any = having(project_id="p", zone="z")


def _told(*rows: tuple[Event, str, float]) -> list[happened.Told]:
    now = dt.datetime.now(dt.UTC)
    operations = [
        {
            "operationType": event.value,
            "targetLink": ZONE + name,
            "insertTime": (now - dt.timedelta(hours=hours)).isoformat(),
        }
        for event, name, hours in rows
    ]
    reset = operations[0] | {"operationType": happened.RESET}
    api = cast("Any", having(operations_of=lambda *_: [reset, *operations]))
    found = happened.operations(api, PLACE)
    return happened.look(found, lambda name: name.startswith("np-vm-"))


def test_what_happened_within_a_day_is_told_with_who_was_hit_most_and_others_are_left_out() -> None:
    told = _told(
        (Event.PREEMPTED, "np-vm-a", 30),
        (Event.PREEMPTED, "np-vm-b", 5),
        (Event.REMADE, "np-vm-b", 4.9),
        (Event.PREEMPTED, "np-vm-b", 3),
        (Event.PREEMPTED, "np-vm-a", 2),
        (Event.REMADE, "np-vm-c", 1),
        (Event.HOST_ERROR, "another-vm-b", 1),
    )
    preempted, remade = happened.within_a_day(told, Clock(), "VM")
    assert (preempted.event, preempted.count, preempted.names) == (
        "preempted",
        3,
        ("np-vm-b", "np-vm-a"),
    )
    assert preempted.words == (
        "within a day 2 VMs were preempted: np-vm-b 2 times, np-vm-a; the last 2 h 0 min ago"
    )
    assert remade.words == (
        "within a day 1 VM was gone, and its group made it again: np-vm-c; the last 1 h 0 min ago"
    )
    assert list(happened.storms(told, Clock())) == []


def test_the_same_machine_three_times_in_a_day_is_a_storm_with_what_to_do() -> None:
    told = _told(
        *((Event.PREEMPTED, "np-vm-a", hours) for hours in (20, 10, 1)),
        *((Event.HOST_ERROR, "np-vm-b", hours) for hours in (40, 10, 1)),
    )
    (storm,) = happened.storms(told, Clock())
    assert storm.what == (
        "np-vm-a was gone 3 times within a day, the last time as it was preempted"
    )
    assert "another ZONE" in storm.fix


def test_each_event_has_a_way_out_of_its_storm() -> None:
    assert set(happened._WAYS) == set(Event)
