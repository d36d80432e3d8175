"""Test is of all VMs: of a part of them it says so, and whether the rest is still to come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.errors import ClusterError, StillWaiting
from provision.kinds.vms import complete
from provision.kinds.vms.instances import Vm
from provision.time.clock import Clock

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.state.record import Record

RECORD = cast(
    "Record",
    SimpleNamespace(project_id="p", zone="z", region="r", name_prefix="np", settings={}),
)
OPEN = {"name": "np-1", "state": "ACCEPTED", "resizeBy": 1}
GONE_BY = {"name": "np-1", "state": "SUCCEEDED", "resizeBy": 1}


def _vms(*statuses: str) -> list[Vm]:
    about = {"machineType": "a2-highgpu-2g", "networkInterfaces": [{}]}
    return [
        Vm.of({"name": f"np-vm-{number}", "status": status, **about}, Clock(0))
        for number, status in enumerate(statuses)
    ]


def _cloud(group: dict[str, Any] | None, *requests: dict[str, Any]) -> Cloud:
    api = SimpleNamespace(find=lambda *_: group, resize_requests=lambda _: list(requests))
    folder = SimpleNamespace(outputs=lambda: {"group": {"size": 2}})
    return cast("Cloud", SimpleNamespace(api=api, folder=folder))


@pytest.mark.parametrize(
    ("cloud", "vms", "error", "code"),
    [
        (_cloud({"targetSize": 2}), _vms("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 2}), [], StillWaiting, 75),
        (_cloud({"targetSize": 2}), _vms("RUNNING", "STAGING"), StillWaiting, 75),
        (_cloud({"targetSize": 0}, OPEN), _vms("RUNNING"), StillWaiting, 75),
        (_cloud({"targetSize": 1}, GONE_BY), _vms("RUNNING"), ClusterError, 8),
        (_cloud({"targetSize": 0}), [], ClusterError, 8),
        (_cloud(None), [], ClusterError, 8),
        (_cloud({"targetSize": 3}), _vms("RUNNING", "RUNNING", "RUNNING"), ClusterError, 8),
    ],
)
def test_row_6_a_part_of_the_vms_or_none_does_not_pass(
    cloud: Cloud, vms: list[Vm], error: type[StillWaiting | ClusterError], code: int
) -> None:
    with pytest.raises(error) as caught:
        complete.require(cloud, RECORD, vms)
    assert caught.value.exit_code == code
    running = sum(vm.status == "RUNNING" for vm in vms)
    assert f"{running} of 2 VMs of np-mig" in caught.value.problems[0].what


def test_all_of_them_are_tested() -> None:
    complete.require(_cloud({"targetSize": 2}), RECORD, _vms("RUNNING", "RUNNING"))
