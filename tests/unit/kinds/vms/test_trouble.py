"""What Status finds broken in a group of VMs, and what it finds only under way."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.documents.status import About, Trouble, Waiting
from provision.documents.vm_status import Startup, StartupState, StartupStep, Vm
from provision.kinds.vms import trouble
from provision.kinds.vms.flex_start import ResizeRequest
from provision.kinds.vms.instances import Event, Interruption, Member
from provision.kinds.vms.out_of_date import LostAccount
from provision.spec.pools import Group
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi

GROUP = Group(
    project="p", zone="us-central1-a", name="np-mig", size=2, machine_type="a2-highgpu-1g"
)
STOCKOUT = {
    "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    "message": "The zone 'projects/p/zones/us-central1-a' does not have enough resources.",
}


class Api:
    """A Google that has such machines in two more zones."""

    def zones_with(self, _project: str, _collection: str, _name: str) -> set[str]:
        return {"us-central1-a", "us-central1-b", "europe-west4-a"}


def _started(minutes: float = 10) -> str:
    return (dt.datetime.now(dt.UTC) - dt.timedelta(minutes=minutes)).isoformat()


def _vm(
    name: str = "np-vm-a",
    state: StartupState | None = StartupState.DONE,
    step: str | None = None,
    words: str = "has started up",
    **changes: Any,
) -> Vm:
    startup = Startup(state=state, step=step, words=words, **changes.pop("startup", {}))
    usual: dict[str, Any] = {
        "name": name,
        "status": "RUNNING",
        "machine_type": "a2-highgpu-1g",
        "started": _started(),
        "startup": startup,
    }
    return Vm(**{**usual, **changes})


def _case(**changes: Any) -> trouble.Case:
    usual = trouble.Case(
        group=GROUP,
        exists=True,
        wanted=2,
        limit=None,
        there=2,
        vms=(_vm("np-vm-a"), _vm("np-vm-b")),
        down=(),
        known={},
        requests=(),
        errors=(),
        clock=Clock(),
        api=cast("GoogleApi", Api()),
    )
    return dataclasses.replace(usual, **changes)


def _broken(**changes: Any) -> list[Trouble]:
    return list(trouble.found(_case(**changes)))


def _waits(**changes: Any) -> list[Waiting]:
    return list(trouble.waiting(_case(**changes)))


def _member(action: str, *reasons: str, name: str = "np-vm-b", status: str = "") -> Member:
    return Member(name=name, status=status, action=action, reasons=reasons)


def test_vms_that_run_and_have_started_up_are_no_trouble() -> None:
    assert (_broken(), _waits()) == ([], [])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (
            {"unrepaired": True},
            "the group np-mig makes no VM again that fails or is preempted",
        ),
        ({"exists": False, "vms": (), "there": 0}, "the group np-mig does not exist"),
    ],
)
def test_what_is_wrong_with_the_group_itself_is_told_alone(
    changes: dict[str, Any], what: str
) -> None:
    (one,) = _broken(**changes)
    assert one.what == what
    assert "run Create" in one.fix


def test_an_account_that_is_gone_is_the_first_that_is_told() -> None:
    lost = LostAccount(vms=("np-vm-a",), what="its account", back="undelete 1")
    first, _ = _broken(lost=(lost,), down=(_member("NONE", status="TERMINATED"),))
    assert (first.what, first.names, first.fix) == ("its account", ("np-vm-a",), "undelete 1")
    assert not first.by_itself


def test_a_vm_that_is_gone_is_told_with_what_happened_and_googles_reason() -> None:
    known = {"np-vm-b": Interruption(event=Event.PREEMPTED, ago=120)}
    (one,) = _broken(down=(_member("RECREATING", "no room"),), known=known)
    assert one.what == (
        "np-vm-b was preempted; it does not exist: its group makes it as soon as there is room"
    )
    assert (one.names, one.why, one.by_itself) == (("np-vm-b",), ("no room",), True)


def test_a_vm_that_its_group_leaves_alone_comes_with_the_command_that_takes_it_out() -> None:
    down = (_member("NONE", status="TERMINATED"),)
    (one,) = _broken(down=down)
    assert "--zone us-central1-a --project p --instances=np-vm-b" in one.fix
    assert not one.by_itself
    (off,) = _broken(down=down, idles=True)
    assert off.what == "np-vm-b powered off as they were idle (IDLE_TIMEOUT)"
    assert "run Create, which starts what is off" in off.fix


def test_a_vm_that_google_starts_again_is_not_to_be_deleted() -> None:
    known = {"np-vm-b": Interruption(event=Event.MAINTENANCE, ago=120)}
    stopped = dataclasses.replace(_member("NONE", status="TERMINATED"), restarts=True)
    (one,) = _broken(down=(stopped,), known=known, idles=True)
    assert one.what == (
        "np-vm-b was stopped to maintain its host; it is TERMINATED: Google starts it again,"
        " usually within minutes"
    )
    assert (one.fix, one.by_itself) == ("", True)


@pytest.mark.parametrize(
    ("bound", "command"),
    [
        (False, "recreate-instances np-mig --zone us-central1-a --project p --instances=np-vm-a"),
        (True, "report-host-as-faulty np-vm-a --zone us-central1-a --project p"),
    ],
)
def test_gpus_that_complain_are_named_with_the_way_to_another_host(
    command: str, *, bound: bool
) -> None:
    faults = ("NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.", "7 GPUs instead of 8")
    vms = (dataclasses.replace(_vm("np-vm-a"), faults=faults), _vm("np-vm-b"))
    (one,) = _broken(vms=vms, bound=bound)
    assert one.what == f"the GPUs of np-vm-a complain: {faults[0]}"
    assert one.why == (faults[1],)
    assert command in one.fix
    assert not one.by_itself


def test_vms_that_run_and_are_not_heard_of_are_broken_and_not_under_way() -> None:
    silent: dict[str, Any] = {"silence": "has not been heard of for 12 min"}
    at_work: dict[str, Any] = {"state": StartupState.RUNNING, "step": "command", **silent}
    vms = (_vm("np-vm-a", **silent), _vm("np-vm-b", **at_work))
    (one,) = _broken(vms=vms)
    assert one.what == "2 VMs: each has not been heard of for 12 min"
    assert one.names == ("np-vm-a", "np-vm-b")
    assert "instances reset np-vm-a --zone us-central1-a --project p" in one.fix
    assert not one.by_itself
    assert _waits(vms=vms) == []
    assert not any(vm.is_ready for vm in vms)


def test_a_stockout_is_one_trouble_with_the_places_that_have_such_machines() -> None:
    (one,) = _broken(down=(_member("CREATING", STOCKOUT["message"]),), errors=[STOCKOUT])
    assert "us-central1-a has no a2-highgpu-1g available now" in one.what
    assert "us-central1-b" in one.fix
    assert (one.names, one.by_itself) == (("np-vm-b",), True)


def test_a_vm_that_does_not_come_for_a_reason_that_nobody_knows_is_told_all_the_same() -> None:
    (one,) = _broken(down=(_member("CREATING", "odd"),), errors=[{"message": "odd"}])
    assert one.what == "np-vm-b does not exist: its group makes it as soon as there is room"
    assert one.why == ("odd",)


def test_a_vm_that_is_being_made_is_under_way_and_not_broken() -> None:
    down = (_member("CREATING"),)
    assert _broken(down=down) == []
    assert [one.what for one in _waits(down=down)] == ["1 VM is being made"]


def test_a_command_that_failed_for_good_is_begun_again_on_the_vm_and_not_by_a_reset() -> None:
    failed: dict[str, Any] = {"state": StartupState.FAILED, "step": "command"}
    (one,) = _broken(vms=(_vm("np-vm-a", **failed), _vm("np-vm-b")))
    assert "sudo systemctl restart aiinfra-command" in one.fix
    assert "reset" not in one.fix


def test_a_command_that_fails_and_is_begun_again_is_one_trouble_and_nothing_to_wait_for() -> None:
    def failing(times: int) -> dict[str, Any]:
        step = StartupStep(state="failing", detail=f"exit code {times}", failures=times)
        return {
            "state": StartupState.RUNNING,
            "step": "command",
            "startup": {"steps": {"command": step}},
        }

    vms = (_vm("np-vm-a", **failing(2)), _vm("np-vm-b", **failing(5)), _vm("np-vm-c"))
    (one,) = _broken(vms=vms)
    assert one.names == ("np-vm-a", "np-vm-b")
    assert "up to 5 times in a row" in one.what
    assert (one.why, one.by_itself) == (("exit code 5",), True)
    assert list(trouble.waiting(_case(vms=vms))) == []


def test_those_that_failed_in_the_same_step_are_one_trouble_with_the_last_of_the_output() -> None:
    failed: dict[str, Any] = {
        "state": StartupState.FAILED,
        "step": "ray",
        "words": "failed in the step ray",
        "startup": {"detail": "one\ntwo\nthree\nfour"},
    }
    (one,) = _broken(vms=(_vm("np-vm-a", **failed), _vm("np-vm-b", **failed)))
    assert one.what == "2 VMs: each failed in the step ray"
    assert (one.count, one.names) == (2, ("np-vm-a", "np-vm-b"))
    assert one.why == ("two", "three", "four")
    assert "instances reset np-vm-a --zone us-central1-a --project p" in one.fix
    assert "/var/log/aiinfra/step-ray.log" in one.fix


@pytest.mark.parametrize(
    ("step", "minutes", "late"),
    [(None, 10, False), (None, 60, True), ("ray", 60, True), ("command", 400, False)],
)
def test_a_start_up_is_late_in_the_end_but_for_the_users_own_command(
    step: str | None,
    minutes: float,
    late: bool,  # noqa: FBT001 - a case
) -> None:
    state = StartupState.RUNNING if step else None
    words = f"is at the step {step}" if step else "has not begun its start-up"
    vm = _vm(state=state, step=step, words=words, started=_started(minutes))
    assert [one.about for one in _broken(vms=(vm,))] == [About.START_UP] * late
    assert [one.about for one in _waits(vms=(vm,))] == [About.START_UP] * (not late)


def test_a_step_that_failed_alone_is_told_after_all_else() -> None:
    steps = {"ops-agent": StartupStep(state="failed", detail="no package")}
    (one,) = _broken(vms=(_vm(startup={"steps": steps}),))
    assert one.what == "the step ops-agent failed on 1 VM; the rest of the start-up continued"
    assert one.why == ("no package",)


def _request(state: str, *errors: Mapping[str, Any]) -> ResizeRequest:
    return ResizeRequest(
        name="np-1", count=2, run_seconds=3600, state=state, created=0.0, errors=errors
    )


@pytest.mark.parametrize(
    ("there", "limit", "states", "missing"),
    [
        (1, 3600, (), 1),
        (1, 3600, ("SUCCEEDED",), 1),
        (2, 3600, (), 0),
        (1, None, (), 1),
        (0, 3600, ("ACCEPTED",), 0),
    ],
)
def test_vms_that_neither_exist_nor_are_asked_for_are_missed(
    there: int, limit: int | None, states: tuple[str, ...], missing: int
) -> None:
    requests = tuple(map(_request, states))
    found = _broken(there=there, limit=limit, vms=(), requests=requests)
    whats = [one.what for one in found]
    assert whats == [f"{missing} of 2 VMs are no longer part of the group"] * bool(missing)
    if missing:
        assert ("run duration of 1 h 0 min" in found[0].why[0]) is (limit is not None)


def test_a_request_that_waits_tells_why_and_what_else_can_be_done() -> None:
    (one,) = _waits(there=0, vms=(), requests=(_request("ACCEPTED", STOCKOUT),))
    assert one.what == "the request np-1 for 2 VMs is waiting in Google's queue (ACCEPTED)"
    assert one.why == (STOCKOUT["message"],)
    assert "zones of us-central1 that have the machine type: us-central1-b" in one.advice


def test_a_request_that_failed_is_trouble_as_long_as_its_vms_are_missing() -> None:
    requests = (_request("FAILED", STOCKOUT),)
    found = _broken(there=0, vms=(), requests=requests)
    assert [one.about for one in found] == [About.REQUEST, About.MACHINES]
    assert "run Create again for a new request" in found[0].fix
    assert _broken(requests=requests) == []


def test_those_that_need_a_look_come_first() -> None:
    vms = [
        _vm("well"),
        _vm("bound-to-stop", maintenance_seconds=60),
        _vm("starting", StartupState.RUNNING, "ray"),
        _vm("a-silent", silence="has not been heard of"),
        _vm("failed", StartupState.FAILED, "ray"),
        _vm("stopped", status="STOPPING"),
    ]
    assert [vm.name for vm in sorted(vms, key=trouble.rank)] == [
        "stopped",
        "a-silent",
        "failed",
        "starting",
        "bound-to-stop",
        "well",
    ]
