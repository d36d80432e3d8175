"""What is told of VMs that Google has taken away, and when that is an error."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.errors import ClusterError, ExitCode
from provision.kinds.vms import idle, interruptions
from provision.kinds.vms.instances import Vm
from provision.kinds.vms.interruptions import Event, Interruption
from provision.spec.pools import Group
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.google.api import GoogleApi

GROUP = Group(project="p", zone="z", name="np-mig", size=2, machine_type="a3-highgpu-8g")
ZONE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/"
STOCKOUT = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no  room"}


def _managed(
    name: str, status: str = "", action: str = "RECREATING", **more: Any
) -> dict[str, Any]:
    told = {"instanceStatus": status} if status else {}
    return {"instance": ZONE + name, "currentAction": action, **told, **more}


LOST = _managed("np-vm-b", lastAttempt={"errors": {"errors": [STOCKOUT, STOCKOUT]}})
RUNNING = _managed("np-vm-a", "RUNNING", "NONE")


def test_a_vm_that_does_not_exist_is_made_again_and_says_why_it_is_not() -> None:
    (one,) = interruptions.down([RUNNING, LOST])
    assert (one.name, one.status, one.reasons) == ("np-vm-b", "", ("no room",))
    assert one.words == "does not exist: its group makes it as soon as there is room"


@pytest.mark.parametrize(
    ("status", "action", "words"),
    [
        ("TERMINATED", "NONE", "is TERMINATED, and its group does nothing about it"),
        ("STOPPING", "DELETING", "is STOPPING: its group is deleting it"),
        ("STAGING", "CREATING", "is STAGING: its group makes it as soon as there is room"),
    ],
)
def test_what_becomes_of_a_vm_is_what_its_group_does(status: str, action: str, words: str) -> None:
    (one,) = interruptions.down([_managed("np-vm-a", status, action)])
    assert one.words == words


class FakeApi:
    """A Google with these operations, all a minute old but the last, which is an hour old."""

    def __init__(self, *types: str) -> None:
        self.types = types
        self.asked: Sequence[str] = ()

    def operations_of(self, _: str, __: str, types: Sequence[str]) -> list[dict[str, Any]]:
        self.asked = types
        now = dt.datetime.now(dt.UTC)
        return [
            {
                "operationType": type_,
                "targetLink": ZONE + "np-vm-b",
                "insertTime": (now - dt.timedelta(minutes=60 if last else 1)).isoformat(),
            }
            for type_, last in ((it, it == self.types[-1]) for it in self.types)
        ]


def test_the_last_event_of_a_vm_counts() -> None:
    api = FakeApi("compute.instances.preempted", "compute.instances.hostError")
    place = cast("Any", type("Place", (), {"project_id": "p", "zone": "z"}))
    known = interruptions.read(cast("GoogleApi", api), place, Clock())
    assert set(api.asked) == set(Event)
    assert known["np-vm-b"].event is Event.PREEMPTED
    assert known["np-vm-b"].words == "was preempted 1 min ago"


@pytest.mark.parametrize(
    ("event", "minutes", "started", "automatic", "back"),
    [
        (Event.MAINTENANCE, 5, 600, True, True),
        (Event.HOST_ERROR, 29, 600, True, True),
        (Event.MAINTENANCE, 31, 600, True, False),
        (Event.MAINTENANCE, 20, 10, True, False),
        (Event.MAINTENANCE, 5, 600, False, False),
        (Event.PREEMPTED, 5, 600, True, False),
    ],
    ids=["maintained", "failed", "long-ago", "back-since", "flex-or-spot", "preempted"],
)
def test_google_starts_a_vm_again_that_it_stopped_for_its_host_a_while_ago(
    event: Event,
    minutes: float,
    started: float,
    automatic: bool,  # noqa: FBT001 - a case
    back: bool,  # noqa: FBT001 - a case
) -> None:
    moment = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=started)
    vm = Vm.of(
        {
            "name": "np-vm-b",
            "status": "TERMINATED",
            "machineType": "a3-highgpu-8g",
            "lastStartTimestamp": moment.isoformat(),
            "scheduling": {"automaticRestart": automatic},
        },
        Clock(),
    )
    known = {"np-vm-b": Interruption(event=event, ago=minutes * 60)}

    restarting = interruptions.restarting([vm], known, Clock())
    (one,) = interruptions.down([_managed("np-vm-b", "TERMINATED", "NONE")], restarting)

    restart = "is TERMINATED: Google starts it again, usually within minutes"
    assert (one.words == restart) is back
    assert idle.is_off(one) is not back
    assert not interruptions.restarting([vm], {}, Clock()), "somebody may have stopped it"


def test_a_note_names_the_event_and_googles_reason() -> None:
    known = {"np-vm-b": Interruption(event=Event.PREEMPTED, ago=60.0)}
    (note,) = interruptions.notes(interruptions.down([LOST, RUNNING]), known)
    assert note.what.startswith("np-vm-b was preempted; it does not exist: its group makes it")
    assert note.why == "no room"


def test_what_is_not_made_again_is_an_error_with_the_command_that_mends_it() -> None:
    stopped = interruptions.down([_managed("np-vm-b", "TERMINATED", "NONE"), RUNNING])
    known = {"np-vm-b": Interruption(event=Event.HOST_ERROR, ago=60.0)}
    with pytest.raises(ClusterError) as caught:
        interruptions.lasting(GROUP, stopped, known)
    assert caught.value.exit_code is ExitCode.CLUSTER
    (problem,) = caught.value.problems
    assert problem.what == (
        "np-vm-b lost its host, which failed; it is TERMINATED, and its group does nothing about it"
    )
    assert "delete-instances np-mig --zone z --project p --instances=np-vm-b" in problem.fix
    interruptions.lasting(GROUP, [], known)
