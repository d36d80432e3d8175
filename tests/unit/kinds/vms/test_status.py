"""A look at 1,000 VMs: few requests, and none again for what is over."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from provision.console import Console
from provision.context import Cloud, Context
from provision.documents import plain
from provision.kinds.vms import status
from provision.report import Report
from provision.settings.model import Settings
from provision.time.clock import Clock
from tests.unit.memory_folder import MemoryFolder
from tests.unit.preflight.test_quotas import RECORD as ANY

if TYPE_CHECKING:
    from provision.documents.vm_status import VmGroup

VMS = 1000
ZONE = "projects/p/zones/us-central1-a"
NEW, OLD = ("projects/p/global/instanceTemplates/" + name for name in ("new", "old"))
WELL = {"startup": json.dumps({"state": "done", "steps": {"agent": {"state": "done"}}})}
FAILED = {
    "startup": json.dumps(
        {
            "state": "failed",
            "step": "command",
            "steps": {"command": {"state": "failed", "detail": "no module\nexit code 1"}},
        }
    )
}


def _url(path: str) -> str:
    return f"https://www.googleapis.com/compute/v1/{path}"


class Api:
    """A Google with a group of VMs, which counts what it is asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.restarted = ""

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

    def _vm(self, number: int) -> dict[str, Any]:
        name = f"np-vm-{number:04d}"
        started = "2026-11-22T09:00:00Z" if name == self.restarted else "2026-11-22T08:00:00Z"
        return {
            "name": name,
            "status": "RUNNING" if number else "TERMINATED",
            "machineType": _url(f"{ZONE}/machineTypes/a2-highgpu-{2 if number == 7 else 1}g"),
            "creationTimestamp": "2026-11-22T08:00:00Z",
            "lastStartTimestamp": started,
            "scheduling": {"maxRunDuration": {"seconds": str(10**9)}},
        }

    def guest_attributes(self, path: str, _namespace: str) -> dict[str, str]:
        self.asked["guest attributes"] += 1
        return FAILED if path.endswith("0042") else WELL

    def operations_of(self, *_where: object) -> list[dict[str, Any]]:
        self.asked["operations"] += 1
        return []

    def resize_requests(self, _group: str) -> list[dict[str, Any]]:
        self.asked["requests"] += 1
        return []


def _folder() -> MemoryFolder:
    """A state folder with the VMs' roster."""
    members: list[dict[str, Any]] = [
        {"name": f"np-vm-{number:04d}", "rank": VMS - 1 - number, "present": number != 3}
        for number in range(VMS)
    ]
    members[3] |= {"since": "2026-11-22T09:00:00Z", "faults": ["NVRM: Xid 79"]}
    beats = {f"vms/members/np-vm-{it:04d}.json": "{}" for it in range(VMS) if it != 3}
    roster = {"vms/roster.json": json.dumps({"members": members})}
    return MemoryFolder({**roster, **beats}, now=time.time())


def _context() -> Context:
    settings = Settings(
        {
            "action": "Status",
            "project_id": "my-project",
            "name_prefix": "np",
            "zone": "us-central1-a",
        }
    )
    return Context(
        settings=settings, environ={}, clock=Clock(0), console=Console(), report=Report()
    )


RECORD = dataclasses.replace(
    ANY,
    project_id="p",
    settings={
        "INSTANCE_COUNT": VMS,
        "VM_TYPE": "a2-highgpu-1g",
        "DISK_SIZE_GB": 100,
        "DISK_TYPE": "pd-ssd",
        "NETWORK_CONFIG": "default_network",
        "ENABLE_EXTERNAL_IP": True,
    },
)


def _look(api: Api, before: VmGroup | None = None) -> VmGroup:
    folder = _folder()
    cloud = cast("Cloud", SimpleNamespace(api=api, folder=folder))
    found = status.look(_context(), cloud, RECORD, before)
    api.asked.update(folder.looked)
    return found


def test_a_thousand_vms_are_looked_at_with_one_listing_of_each_kind() -> None:
    api = Api()
    found = _look(api)
    assert api.asked == {
        "find": 2,  # the group, and its template, since a VM is of another
        "managed": 1,
        "named": 1,
        "operations": 2,  # interruptions, and resets
        "requests": 1,
        "vms/roster.json": 1,
        "vms/members/": 1,
        "guest attributes": VMS,  # Google answers for one VM at a time
    }
    counts = found.counts
    assert (counts.exist, counts.running, counts.ready) == (VMS, VMS - 1, VMS - 3)
    assert (counts.failed, counts.silent, counts.starting) == (1, 1, 0)
    assert (counts.down, counts.out_of_date) == (1, 1)


def test_each_vm_that_is_there_has_its_rank() -> None:
    ranks = {vm.name: vm.rank for vm in _look(Api()).vms}
    assert (ranks["np-vm-0000"], ranks["np-vm-0999"]) == (999, 0)
    assert ranks["np-vm-0003"] is None


def test_the_broken_ones_of_a_thousand_come_first_and_are_named_in_a_short_document() -> None:
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


def test_a_later_look_asks_only_those_whose_start_up_is_not_done_or_has_begun_anew() -> None:
    api = Api()
    first = _look(api)
    api.asked.clear()
    api.restarted = "np-vm-0005"
    second = _look(api, first)
    assert api.asked["guest attributes"] == 2
    assert second.counts == first.counts


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
