"""VMs: how long they may still run, where their notebook is, and what Google has done to them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.kinds.vms import instances
from provision.kinds.vms.instances import Event, Interruption, Vm
from provision.spec.pools import Group
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.google.api import GoogleApi

GROUP = Group(project="p", zone="z", name="np-mig", size=2, machine_type="a3-highgpu-8g")
ZONE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/"


def _ago(**span: float) -> str:
    return (dt.datetime.now(dt.UTC) - dt.timedelta(**span)).isoformat()


def _vm(clock: Clock | None = None, **fields: Any) -> Vm:
    document = {"name": "vm", "status": "RUNNING", "machineType": f"{ZONE}machineTypes/a2"}
    return Vm.of(document | {"networkInterfaces": [{}]} | fields, clock or Clock())


def _limited(started: str) -> Vm:
    return _vm(scheduling={"maxRunDuration": {"seconds": "172800"}}, lastStartTimestamp=started)


def test_the_run_duration_counts_from_the_last_start_and_in_a_rehearsals_time() -> None:
    assert _vm(creationTimestamp=_ago(days=90)).remaining is None
    assert _limited(_ago(hours=47)).remaining == pytest.approx(3600, abs=60)
    limit = {"maxRunDuration": {"seconds": "1000"}}
    vm = _vm(Clock(0.02), scheduling=limit, creationTimestamp=_ago(seconds=10))
    assert vm.remaining == pytest.approx(500, abs=60)


def test_less_than_a_day_is_worth_a_warning_and_more_is_not() -> None:
    assert instances.ending_soon([_limited(_ago(hours=1)), _vm()]) == []
    (note,) = instances.ending_soon([_limited(_ago(hours=45))])
    assert note.setting == "MAX_RUN_DURATION"
    assert note.what == "in 2 h 59 min Google deletes vm"


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("abc-dot-us-central1.notebooks.example", "https://abc-dot-us-central1.notebooks.example"),
        ("https://abc.example", "https://abc.example"),
        ("", None),
    ],
)
def test_a_notebooks_url_is_a_link(value: str, url: str | None) -> None:
    assert _vm(metadata={"items": [{"key": "proxy-url", "value": value}]}).notebook == url
    assert _vm().notebook is None


def test_a_vm_has_the_number_and_the_address_by_which_it_is_asked() -> None:
    vm = _vm(id="417", networkInterfaces=[{"networkIP": "10.0.0.2"}, {"networkIP": "10.1.0.2"}])
    assert (vm.id, vm.address, vm.interfaces) == ("417", "10.0.0.2", 2)


def _managed(
    name: str, status: str = "", action: str = "RECREATING", **more: Any
) -> dict[str, Any]:
    told = {"instanceStatus": status} if status else {}
    return {"instance": f"{ZONE}instances/{name}", "currentAction": action, **told, **more}


STOCKOUT = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no  room"}
LOST = _managed("np-vm-b", lastAttempt={"errors": {"errors": [STOCKOUT, STOCKOUT]}})
RUNNING = _managed("np-vm-a", "RUNNING", "NONE")
STOPPED = _managed("np-vm-b", "TERMINATED", "NONE")


@pytest.mark.parametrize(
    ("member", "reasons", "words"),
    [
        (LOST, ("no room",), "does not exist: its group makes it as soon as there is room"),
        (STOPPED, (), "is TERMINATED, and its group does nothing about it"),
        (_managed("b", "STOPPING", "DELETING"), (), "is STOPPING: its group is deleting it"),
        (
            _managed("b", "STAGING", "CREATING"),
            (),
            "is STAGING: its group makes it as soon as there is room",
        ),
    ],
)
def test_what_becomes_of_a_vm_is_what_its_group_does(
    member: dict[str, Any], reasons: tuple[str, ...], words: str
) -> None:
    (one,) = instances.down([RUNNING, member])
    assert (one.reasons, one.words) == (reasons, words)


class FakeApi:
    """A Google with these operations, all a minute old but the last, which is an hour old."""

    def __init__(self, *types: str) -> None:
        self.types = types
        self.asked: Sequence[str] = ()

    def operations_of(self, _: str, __: str, types: Sequence[str]) -> list[dict[str, Any]]:
        self.asked = types
        return [
            {
                "operationType": it,
                "targetLink": f"{ZONE}instances/np-vm-b",
                "insertTime": _ago(minutes=60 if it == self.types[-1] else 1),
            }
            for it in self.types
        ]


def test_the_last_event_of_a_vm_counts() -> None:
    api = FakeApi("compute.instances.preempted", "compute.instances.hostError")
    place = cast("Any", type("Place", (), {"project_id": "p", "zone": "z"}))
    known = instances.interruptions(cast("GoogleApi", api), place, Clock())
    assert set(api.asked) == set(Event)
    assert known["np-vm-b"].event is Event.PREEMPTED
    assert known["np-vm-b"].words == "was preempted 1 min ago"


@pytest.mark.parametrize(
    ("event", "minutes", "started", "automatic", "back"),
    [
        pytest.param(Event.MAINTENANCE, 5, 600, True, True, id="maintained"),
        pytest.param(Event.HOST_ERROR, 29, 600, True, True, id="failed"),
        pytest.param(Event.MAINTENANCE, 31, 600, True, False, id="long-ago"),
        pytest.param(Event.MAINTENANCE, 20, 10, True, False, id="back-since"),
        pytest.param(Event.MAINTENANCE, 5, 600, False, False, id="flex-or-spot"),
        pytest.param(Event.PREEMPTED, 5, 600, True, False, id="preempted"),
    ],
)
def test_google_starts_a_vm_again_that_it_stopped_for_its_host_a_while_ago(
    event: Event, minutes: float, started: float, *, automatic: bool, back: bool
) -> None:
    vm = _vm(
        name="np-vm-b",
        lastStartTimestamp=_ago(minutes=started),
        scheduling={"automaticRestart": automatic},
    )
    known = {"np-vm-b": Interruption(event=event, ago=minutes * 60)}
    (one,) = instances.down([STOPPED], instances.restarting([vm], known, Clock()))
    restart = "is TERMINATED: Google starts it again, usually within minutes"
    assert (one.words == restart) is back
    assert one.is_off is not back
    assert not instances.restarting([vm], {}, Clock()), "somebody may have stopped it"


def test_a_note_names_the_event_and_googles_reason() -> None:
    known = {"np-vm-b": Interruption(event=Event.PREEMPTED, ago=60.0)}
    (note,) = instances.gone(instances.down([LOST, RUNNING]), known)
    assert note.what.startswith("np-vm-b was preempted; it does not exist: its group makes it")
    assert note.why == "no room"


def test_what_is_not_made_again_comes_with_the_command_that_takes_it_out() -> None:
    known = {"np-vm-b": Interruption(event=Event.HOST_ERROR, ago=60.0)}
    (problem,) = instances.gone(instances.down([STOPPED, RUNNING]), known, GROUP)
    assert problem.what == (
        "np-vm-b lost its host, which failed; it is TERMINATED, and its group does nothing about it"
    )
    assert "delete-instances np-mig --zone z --project p --instances=np-vm-b" in problem.fix
