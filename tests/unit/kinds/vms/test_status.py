"""A look at 1,000 VMs: few requests, and none again for what is over."""

import dataclasses
import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from provision.console import Console
from provision.context import Context
from provision.documents import plain
from provision.documents.status import About, Trouble, Waiting
from provision.documents.vm_status import (
    SlurmNode,
    SlurmNow,
    Startup,
    StartupState,
    StartupStep,
    Vm,
    VmGroup,
)
from provision.kinds.happened import Event
from provision.kinds.vms import agent, status, trouble
from provision.kinds.vms.flex_start import ResizeRequest
from provision.kinds.vms.instances import Interruption, Member, Seen
from provision.kinds.vms.out_of_date import LostAccount
from provision.report import Report
from provision.settings.model import Settings
from provision.spec.pools import Group
from provision.time.clock import Clock
from tests.table import cases
from tests.unit.kinds.cases import having
from tests.unit.memory_folder import MemoryFolder
from tests.unit.preflight.test_quotas import RECORD as ANY

VMS = 1000
ZONE = "projects/p/zones/us-central1-a"
NEW, OLD = ("projects/p/global/instanceTemplates/" + name for name in ("new", "old"))
WELL = {"startup": json.dumps({"state": "done", "steps": {"agent": {"state": "done"}}})}
STEP = {"state": "failed", "detail": "no module\nexit code 1"}
TOLD = {"state": "failed", "step": "command", "steps": {"command": STEP}}
FAILED = {"startup": json.dumps(TOLD)}


def _url(path: str) -> str:
    return f"https://www.googleapis.com/compute/v1/{path}"


class Api:
    """A Google with a group of VMs, which counts what it is asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.restarted = ""
        self.operations_of = lambda *_: self._none("operations")
        self.resize_requests = lambda _: self._none("requests")

    def _none(self, what: str) -> list[dict[str, Any]]:
        self.asked[what] += 1
        return []

    def find(self, _service: object, path: str) -> dict[str, Any]:
        self.asked["find"] += 1
        if path == NEW:
            return {"properties": {"machineType": "a2-highgpu-1g"}}
        return {"instanceTemplate": _url(NEW), "creationTimestamp": "2026-11-22T08:00:00Z"}

    def managed_instances(self, *_where: str) -> list[dict[str, Any]]:
        self.asked["managed"] += 1
        return [
            {
                "id": str(number),
                "instance": _url(f"{ZONE}/instances/np-vm-{number:04d}"),
                "instanceStatus": "RUNNING" if number else "TERMINATED",
                "currentAction": "NONE",
                "version": {"instanceTemplate": _url(OLD if number == 7 else NEW)},
            }
            for number in range(VMS)
        ]

    def named_instances(self, *_where: str) -> list[dict[str, Any]]:
        self.asked["named"] += 1
        return [self._vm(number) for number in range(VMS)]

    def whole_instances(self, _project: str, _zone: str, names: list[str]) -> list[dict[str, Any]]:
        self.asked["whole"] += len(names)
        return [self._vm(int(name[-4:])) for name in names]

    def _vm(self, number: int) -> dict[str, Any]:
        name = f"np-vm-{number:04d}"
        return {
            "name": name,
            "status": "RUNNING" if number else "TERMINATED",
            "machineType": _url(f"{ZONE}/machineTypes/a2-highgpu-{2 if number == 7 else 1}g"),
            "creationTimestamp": "2026-11-22T08:00:00Z",
            "lastStartTimestamp": f"2026-11-22T0{9 if name == self.restarted else 8}:00:00Z",
            "scheduling": {"maxRunDuration": {"seconds": str(10**9)}},
        }

    def guest_attributes(self, path: str, _namespace: str) -> dict[str, str]:
        self.asked["guest attributes"] += 1
        return FAILED if path.endswith("0042") else WELL


def _folder() -> MemoryFolder:
    """A state folder with the VMs' roster."""
    members: list[dict[str, Any]] = [
        {"name": f"np-vm-{number:04d}", "rank": VMS - 1 - number, "present": number != 3}
        for number in range(VMS)
    ]
    members[3] |= {"since": "2026-11-22T09:00:00Z", "faults": ["NVRM: Xid 79"]}
    beats = {f"vms/members/np-vm-{it:04d}.json": "{}" for it in range(VMS) if it != 3}
    roster = {"vms/roster.json": json.dumps({"members": members})}
    folder = MemoryFolder({**roster, **beats}, now=time.time())
    # That of number 42 has failed.
    folder.notes = dict.fromkeys(beats.keys() - {"vms/members/np-vm-0042.json"}, WELL)
    return folder


def _context() -> Context:
    texts = {"action": "Status", "project_id": "my-project", "name_prefix": "np"}
    about: dict[str, Any] = {"settings": Settings(texts | {"zone": "us-central1-a"})}
    return Context(**about, environ={}, clock=Clock(0), console=Console(), report=Report())


ASKED = {"INSTANCE_COUNT": VMS, "VM_TYPE": "a2-highgpu-1g", "ENABLE_EXTERNAL_IP": True}
ASKED |= {"DISK_SIZE_GB": 100, "DISK_TYPE": "pd-ssd", "NETWORK_CONFIG": "default_network"}
RECORD = dataclasses.replace(ANY, project_id="p", settings=ASKED)


def _look(api: Api, before: VmGroup | None = None) -> VmGroup:
    folder = _folder()
    found = status.look(_context(), having(api=api, folder=folder, lists=None), RECORD, before)
    api.asked.update(folder.looked)
    return found


def test_a_look_at_a_thousand_vms_is_one_listing_of_each_kind_and_a_later_one_asks_few() -> None:
    api = Api()
    found = _look(api)
    assert api.asked == {
        "find": 2,  # the group, and its template, since a VM is of another
        "managed": 1,
        "named": 1,
        "whole": 1,  # that VM, with its metadata
        "operations": 1,  # interruptions, and resets
        "vms/roster.json": 1,
        "vms/members/": 1,
        "guest attributes": 2,  # Google answers for one VM at a time: one silent, one failed
    }
    counts = found.counts
    assert (counts.exist, counts.running, counts.ready) == (VMS, VMS - 1, VMS - 3)
    assert (counts.failed, counts.silent, counts.starting) == (1, 1, 0)
    assert (counts.down, counts.out_of_date) == (1, 1)
    api = Api()
    first = _look(api)
    api.asked.clear()
    api.restarted = "np-vm-0005"
    second = _look(api, first)
    assert api.asked["guest attributes"] == 1
    assert second.counts == first.counts


def test_each_vm_that_is_there_has_its_rank_and_the_broken_ones_of_a_thousand_come_first() -> None:
    ranks = {vm.name: vm.rank for vm in _look(Api()).vms}
    assert (ranks["np-vm-0000"], ranks["np-vm-0999"]) == (999, 0)
    assert ranks["np-vm-0003"] is None
    short = _look(Api()).short()
    assert [vm.name for vm in short.vms[:3]] == ["np-vm-0000", "np-vm-0003", "np-vm-0042"]
    down, silent, faulty, failed = short.trouble
    assert (down.names, failed.names) == (("np-vm-0000",), ("np-vm-0042",))
    assert failed.why == ("no module", "exit code 1")
    assert silent.what.startswith("np-vm-0003 has not been heard of for ")
    assert faulty.what == "the GPUs of np-vm-0003 complain: NVRM: Xid 79"
    (older,) = short.out_of_date
    assert older.differences == ("a2-highgpu-2g instead of a2-highgpu-1g",)
    assert older.names == ("np-vm-0007",)
    assert len(json.dumps(plain(short), indent=2)) < 32 * 1024


def test_the_cost_is_that_of_the_machines_that_run_by_their_own_types() -> None:
    found = _look(Api())
    assert found.cost is not None
    machines = {part.name: part.now for part in found.cost.parts if part.kind.value == "machines"}
    assert [name.partition(",")[0] for name in machines] == [
        "999 x a2-highgpu-1g",
        "1 x a2-highgpu-2g",
    ]
    one, two = (usd for usd in machines.values() if usd is not None)
    # 998 run of the one type, as one of them is stopped, and one of the type of twice the size.
    assert round(one / two, 3) == 499
    assert found.so_far is not None
    assert found.so_far.usd > 0


GROUP = Group(
    project="p", zone="us-central1-a", name="np-mig", size=2, machine_type="a2-highgpu-1g"
)
STOCKOUT = {
    "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    "message": "The zone 'projects/p/zones/us-central1-a' does not have enough resources.",
}


class Elsewhere:
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
    usual = {"status": "RUNNING", "machine_type": "a2-highgpu-1g", "started": _started()}
    return Vm(**{**usual, "name": name, "startup": startup, **changes})


def _case(**changes: Any) -> trouble.Case:
    usual: dict[str, Any] = dict.fromkeys(("down", "requests", "errors"), ())
    usual |= {"vms": (_vm("np-vm-a"), _vm("np-vm-b")), "known": {}, "limit": None}
    usual |= {"group": GROUP, "exists": True, "wanted": 2, "there": 2}
    return trouble.Case(**usual | {"clock": Clock(), "api": Elsewhere()} | changes)


def _broken(**changes: Any) -> list[Trouble]:
    return list(trouble.found(_case(**changes)))


def _waits(**changes: Any) -> list[Waiting]:
    return list(trouble.waiting(_case(**changes)))


def test_a_group_that_a_killed_run_has_not_made_again_is_what_jobs_have_lost() -> None:
    lost = trouble.stranded(having(), ANY, Seen(group=None))
    assert lost
    assert (lost.what, lost.left, lost.here) == (f"{ANY.name_prefix} has no group of VMs", 0, True)


def _member(action: str, *reasons: str, name: str = "np-vm-b", status: str = "") -> Member:
    return Member(name=name, status=status, action=action, reasons=reasons)


def test_an_account_that_is_gone_comes_first_and_a_step_that_failed_alone_last() -> None:
    assert (_broken(), _waits()) == ([], [])
    lost = LostAccount(vms=("np-vm-a",), what="its account", back="undelete 1")
    first, _ = _broken(lost=(lost,), down=(_member("NONE", status="TERMINATED"),))
    assert (first.what, first.names, first.fix) == ("its account", ("np-vm-a",), "undelete 1")
    assert not first.by_itself
    steps = {"ops-agent": StartupStep(state="failed", detail="no package")}
    (one,) = _broken(vms=(_vm(startup={"steps": steps}),))
    assert one.what == "the step ops-agent failed on 1 VM; the rest of the start-up continued"
    assert one.why == ("no package",)


def test_nodes_that_get_no_jobs_from_slurm_are_broken_together_and_so_is_its_silence() -> None:
    full = SlurmNode(state="allocated", gpus=2, gpus_in_use=2)
    bad = SlurmNode(state="drained", reason="aiinfra: NVRM: Xid (PCI:0000:04:00): 79, GPU", gpus=2)
    vms = (_vm("np-vm-a", slurm=full), *(_vm(f"np-vm-{it}", slurm=bad) for it in "bc"))
    now = SlurmNow(head="np-vm-a", states={}, gpus=6, gpus_in_use=2, silent_seconds=40)
    (one,) = _broken(vms=vms, slurm=now)
    assert one.what == "2 VMs: each gets no jobs from Slurm, which has it as drained"
    assert (one.names, one.by_itself) == (("np-vm-b", "np-vm-c"), False)
    assert one.why[0] == bad.reason
    assert one.why[1].startswith("Xid 79: ")
    assert "nodename=np-vm-b,np-vm-c state=resume" in one.fix
    late = dataclasses.replace(bad, state="idle", reason="it does not answer")
    assert [it.by_itself for it in _broken(vms=(_vm(slurm=late),), slurm=now)] == [True]
    (mute,) = _broken(vms=vms, slurm=dataclasses.replace(now, silent_seconds=301))
    assert mute.what == "Slurm has no head that is heard of, for 5 min; the last was np-vm-a"
    assert "journalctl -u aiinfra-slurm` on np-vm-a" in mute.fix
    # VMs that start up have said nothing yet.
    starting = tuple(_vm(it.name, StartupState.RUNNING, "slurm") for it in vms)
    assert not _broken(vms=starting, slurm=dataclasses.replace(now, silent_seconds=900))
    ranked = sorted(vms, key=trouble.rank)
    assert [it.name for it in ranked] == ["np-vm-b", "np-vm-c", "np-vm-a"]


def test_what_slurm_says_is_read_with_numbers_of_all_nodes() -> None:
    node = {"state": "MIXED", "gpus": 8, "gpus_in_use": 3}
    nodes = [{"name": f"np-vm-{it}"} | node for it in "ab"]
    nodes += [{"name": "np-vm-c", "state": "down", "reason": "x" * 500, "gpus": 8}]
    text = json.dumps({"at": time.time() - 30, "head": "np-vm-b", "nodes": nodes})
    queue = MemoryFolder({"vms/slurm/nodes.json": text}).read(agent.QUEUE)
    assert queue is not None
    now = queue.now(Clock())
    assert (now.head, now.states) == ("np-vm-b", {"down": 1, "mixed": 2})
    assert (now.gpus, now.gpus_in_use, now.silent_seconds) == (24, 6, 30)
    assert len(queue.nodes["np-vm-c"].reason) == 160
    spoiled = MemoryFolder({"vms/slurm/nodes.json": '{"nodes": []}'})
    assert spoiled.read(agent.QUEUE) is None


@cases("""
changes                            | what
{unrepaired: true}                 | the group np-mig makes no VM again that fails or is preempted
{exists: false, vms: [], there: 0} | the group np-mig does not exist
""")
def test_what_is_wrong_with_a_group_is_told_alone(changes: dict[str, Any], what: str) -> None:
    (one,) = _broken(**changes)
    assert one.what == what
    assert "run Create" in one.fix


def test_a_vm_that_is_gone_is_told_with_what_happened_and_what_becomes_of_it() -> None:
    known = {"np-vm-b": Interruption(event=Event.PREEMPTED, ago=120)}
    (one,) = _broken(down=(_member("RECREATING", "no room"),), known=known)
    assert one.what == (
        "np-vm-b was preempted; it does not exist: its group makes it as soon as there is room"
    )
    assert (one.names, one.why, one.by_itself) == (("np-vm-b",), ("no room",), True)
    down = (_member("NONE", status="TERMINATED"),)
    (one,) = _broken(down=down)
    assert "--zone us-central1-a --project p --instances=np-vm-b" in one.fix
    assert not one.by_itself
    (off,) = _broken(down=down, idles=True)
    assert off.what == "np-vm-b powered off as they were idle (IDLE_TIMEOUT)"
    assert "run Create, which starts what is off" in off.fix
    known = {"np-vm-b": Interruption(event=Event.MAINTENANCE, ago=120)}
    stopped = dataclasses.replace(_member("NONE", status="TERMINATED"), restarts=True)
    (one,) = _broken(down=(stopped,), known=known, idles=True)
    assert one.what == (
        "np-vm-b was stopped to maintain its host; it is TERMINATED: Google starts it again,"
        " usually within minutes"
    )
    assert (one.fix, one.by_itself) == ("", True)


def test_disks_that_are_full_or_do_not_answer_are_broken_and_ready_vms_stay_ready() -> None:
    full = ("the boot disk is 97 % full", "/mnt/share does not answer since 2026-11-28T20:00:00Z")
    vm = dataclasses.replace(_vm("np-vm-a"), disks=full)
    (one,) = _broken(vms=(vm, _vm("np-vm-b")))
    assert one.what == f"np-vm-a says: {full[0]}; {full[1]}"
    assert "on np-vm-a, see `df" in one.fix
    assert vm.is_ready


@cases("""
bound | command
false | recreate-instances np-mig --zone us-central1-a --project p --instances=np-vm-a
true  | report-host-as-faulty np-vm-a --zone us-central1-a --project p
""")
def test_gpus_that_complain_come_with_a_way_to_a_host(command: str, *, bound: bool) -> None:
    faults = ("NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.", "7 GPUs instead of 8")
    vms = (dataclasses.replace(_vm("np-vm-a"), faults=faults), _vm("np-vm-b"))
    (one,) = _broken(vms=vms, bound=bound)
    assert one.what == f"the GPUs of np-vm-a complain: {faults[0]}"
    assert one.why[0] == faults[1]
    assert one.why[1].startswith("Xid 79: the GPU has fallen off the bus; another host")
    assert command in one.fix
    assert not one.by_itself


def test_gpus_of_a4_want_a_reset_every_60_days() -> None:
    a4: dict[str, Any] = {"machine_type": "a4-highgpu-8g"}
    old, new = _started(61 * 1440 + 1), _started(59 * 1440)
    vms = (_vm("np-vm-a", started=old, **a4), _vm("np-vm-b", started=new, **a4))
    (one,) = _broken(vms=(*vms, _vm("np-vm-c", started=old)))
    assert (one.what, one.names) == ("np-vm-a has not been started for 61 days", ("np-vm-a",))
    assert "every 60 days" in one.why[0]
    assert "recreate-instances np-mig" in one.fix
    assert one.fix.endswith("sudo nvidia-smi --gpu-reset")


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


def test_a_vm_that_does_not_come_is_trouble_with_its_reason_unless_it_is_being_made() -> None:
    (one,) = _broken(down=(_member("CREATING", STOCKOUT["message"]),), errors=[STOCKOUT])
    assert "us-central1-a has no a2-highgpu-1g available now" in one.what
    assert "us-central1-b" in one.fix
    assert (one.names, one.by_itself) == (("np-vm-b",), True)
    (one,) = _broken(down=(_member("CREATING", "odd"),), errors=[{"message": "odd"}])
    assert one.what == "np-vm-b does not exist: its group makes it as soon as there is room"
    (one,) = _broken(down=(_member("CREATING_WITHOUT_RETRIES", "odd"),))
    assert one.what == "np-vm-b does not exist: its group tries once to make it"
    assert _broken(down=(_member("CREATING_WITHOUT_RETRIES"),)) == []
    assert one.why == ("odd",)
    down = (_member("CREATING"),)
    assert _broken(down=down) == []
    assert [one.what for one in _waits(down=down)] == ["1 VM is being made"]


def test_a_command_that_failed_or_fails_is_begun_again_and_nothing_to_wait_for() -> None:
    failed: dict[str, Any] = {"state": StartupState.FAILED, "step": "command"}
    (one,) = _broken(vms=(_vm("np-vm-a", **failed), _vm("np-vm-b")))
    assert "sudo systemctl restart aiinfra-command" in one.fix
    assert "reset" not in one.fix

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


def test_a_start_up_that_failed_with_a_gpu_off_its_bus_is_not_helped_by_a_restart() -> None:
    xid = "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus."
    failed: dict[str, Any] = {
        "state": StartupState.FAILED,
        "step": "gpu",
        "words": "failed in the step gpu",
        "startup": {"detail": xid},
    }
    (one,) = _broken(vms=(_vm("np-vm-a", **failed), _vm("np-vm-b")))
    assert one.why[0] == xid
    assert one.why[1].startswith("Xid 79: the GPU has fallen off the bus; another host")
    assert "recreate-instances" in one.fix
    assert "reset" not in one.fix


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
    step: str | None, minutes: float, *, late: bool
) -> None:
    state = StartupState.RUNNING if step else None
    words = f"is at the step {step}" if step else "has not begun its start-up"
    vm = _vm(state=state, step=step, words=words, started=_started(minutes))
    assert [one.about for one in _broken(vms=(vm,))] == [About.START_UP] * late
    assert [one.about for one in _waits(vms=(vm,))] == [About.START_UP] * (not late)


def _request(state: str, *errors: Mapping[str, Any]) -> ResizeRequest:
    return ResizeRequest(
        name="np-1", count=2, run_seconds=3600, state=state, created=0.0, errors=errors
    )


@cases("""
there | limit | states    | missing
1     | 3600  | -         | 1
1     | 3600  | SUCCEEDED | 1
2     | 3600  | -         | 0
1     | null  | -         | 1
0     | 3600  | ACCEPTED  | 0
""")
def test_vms_that_neither_exist_nor_are_asked_for_are_missed(
    there: int, limit: int | None, states: str, missing: int
) -> None:
    requests = tuple(map(_request, states.split()))
    found = _broken(there=there, limit=limit, vms=(), requests=requests)
    whats = [one.what for one in found]
    verb = "is" if missing == 1 else "are"
    told = f"{missing} of 2 VMs {verb} gone"
    assert whats == [told] * bool(missing)
    if missing:
        assert ("MAX_RUN_DURATION, here 1 h 0 min," in found[0].why[0]) is (limit is not None)


def test_vms_that_google_took_and_no_group_makes_again_were_deleted_by_nobody() -> None:
    known = {
        "np-vm-b": Interruption(event=Event.PREEMPTED, ago=120),
        "np-vm-0": Interruption(event=Event.HOST_ERROR, ago=1_000_000),
    }
    (one,) = _broken(there=1, limit=None, vms=(_vm("np-vm-a"),), known=known)
    assert one.why == ("np-vm-b was preempted 2 min ago, and the group makes no VM again",)


def test_a_request_that_waits_tells_why_and_one_that_failed_is_trouble() -> None:
    (one,) = _waits(there=0, vms=(), requests=(_request("ACCEPTED", STOCKOUT),))
    assert one.what == "the request np-1 for 2 VMs is waiting in Google's queue (ACCEPTED)"
    assert one.why == (STOCKOUT["message"],)
    assert "zones of us-central1 that have the machine type: us-central1-b" in one.advice
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
