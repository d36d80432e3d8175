"""Google's rules of flex start for groups of VMs, by number, as far as settings can break them.

What the Terraform keeps by construction (M1, M2, M4, M5, M6, M13) is tested beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.catalogue import machines

if TYPE_CHECKING:
    from provision.errors import Problem
    from tests.unit.conftest import Given

FLEX = {"ENABLE_FLEX_START": "yes", "VM_TYPE": "a3-highgpu-8g"}
KNOWN = list(machines.MACHINE_TYPES)
N1 = {"ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "1"}


def refused(given: Given, setting: str, **environ: str) -> Problem:
    """The problem of a setting beside flex start, which says why and what to do."""
    problem = given(**FLEX | environ).problem(setting)
    assert problem.why
    assert problem.fix
    return problem


def is_accepted(given: Given, **environ: str) -> bool:
    """Whether nothing is wrong with settings beside flex start."""
    return not given(**FLEX | environ).loaded.problems


def test_flex_start_alone_is_fine_and_runs_a_week(given: Given) -> None:
    case = given(**FLEX)

    assert not case.loaded.problems
    assert case["MAX_RUN_DURATION"] == 604_800


@pytest.mark.parametrize("duration", ["10m", "600", "7d", "604800s"])
def test_m3_vms_run_for_ten_minutes_to_seven_days(given: Given, duration: str) -> None:
    assert is_accepted(given, MAX_RUN_DURATION=duration)


@pytest.mark.parametrize(
    ("duration", "why"), [("599s", "10m to 7d"), ("604801", "at most 7d"), ("8d", "at most 7d")]
)
def test_m3_vms_run_neither_shorter_nor_longer(given: Given, duration: str, why: str) -> None:
    assert why in refused(given, "MAX_RUN_DURATION", MAX_RUN_DURATION=duration).why


@pytest.mark.parametrize("vm_type", ["a2-highgpu-8g", "g2-standard-24", "a3-megagpu-8g"])
def test_m6_only_some_machines_take_a_policy_that_keeps_them_close(
    given: Given, vm_type: str
) -> None:
    asked = {"VM_TYPE": vm_type, "ENABLE_COMPACT_PLACEMENT": "yes"}
    problem = refused(given, "ENABLE_COMPACT_PLACEMENT", **asked)

    assert "A3 Ultra, A4 and H4D" in problem.why


@pytest.mark.parametrize("vm_type", ["a3-ultragpu-8g", "a4-highgpu-8g", "h4d-standard-192"])
def test_m6_machines_that_take_a_workload_policy_may_stand_close(
    given: Given, vm_type: str
) -> None:
    assert is_accepted(given, VM_TYPE=vm_type, ENABLE_COMPACT_PLACEMENT="yes")


def test_m6_of_groups_of_a4_and_a3_ultra_googles_pages_say_both(given: Given) -> None:
    asked = FLEX | {"VM_TYPE": "a4-highgpu-8g", "ENABLE_COMPACT_PLACEMENT": "yes"}
    assert "forbids it" in given(**asked).note("ENABLE_COMPACT_PLACEMENT").why
    without = asked | {"ENABLE_COMPACT_PLACEMENT": "no"}
    assert "ENABLE_COMPACT_PLACEMENT" not in given(**without).noted
    pool = asked | {"ORCHESTRATOR_TYPE": "gke", "ZONE": "us-central1-b"}
    assert "ENABLE_COMPACT_PLACEMENT" not in given(**pool).noted


def test_m9_one_request_asks_for_a_thousand_vms_at_most(given: Given) -> None:
    assert is_accepted(given, INSTANCE_COUNT="1000")
    assert not given(INSTANCE_COUNT="1001").loaded.problems

    problem = refused(given, "INSTANCE_COUNT", INSTANCE_COUNT="1001")

    assert "at most 1000 VMs" in problem.why
    assert "INSTANCE_COUNT=1000" in problem.fix


@pytest.mark.parametrize(
    "vm_type", ["a4x-highgpu-4g", "a4x-maxgpu-4g-metal", "c3-standard-4", "e2-standard-4"]
)
def test_m11_machines_that_flex_start_does_not_have_are_refused(given: Given, vm_type: str) -> None:
    assert vm_type in refused(given, "ENABLE_FLEX_START", VM_TYPE=vm_type).what


@pytest.mark.parametrize(
    "vm_type",
    [*(name for name in KNOWN if "a4x" not in name and "n1-" not in name), "h4d-x", "a9-x"],
)
def test_m11_all_other_machines_with_gpus_and_h4d_are_taken(given: Given, vm_type: str) -> None:
    assert is_accepted(given, VM_TYPE=vm_type)


def test_m11_n1_machines_with_a_gpu_are_taken(given: Given) -> None:
    assert is_accepted(given, VM_TYPE="n1-standard-8", **N1)


@pytest.mark.parametrize(
    ("setting", "value"), [("RESERVATION_NAME", "my-reservation"), ("ENABLE_SPOT", "yes")]
)
def test_m12_neither_reservation_nor_spot_goes_with_it(
    given: Given, setting: str, value: str
) -> None:
    assert "ENABLE_FLEX_START" in refused(given, setting, **{setting: value}).what


FRACTIONS = ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"]


@pytest.mark.parametrize("vm_type", FRACTIONS)
def test_m17_parts_of_an_a3_high_come_by_spot_or_flex_start(given: Given, vm_type: str) -> None:
    assert not given(VM_TYPE=vm_type, ENABLE_FLEX_START="yes").loaded.problems
    assert not given(VM_TYPE=vm_type, ENABLE_SPOT="yes").loaded.problems


@pytest.mark.parametrize("vm_type", FRACTIONS)
def test_m17_parts_of_an_a3_high_come_in_no_other_way(given: Given, vm_type: str) -> None:
    on_demand = given(VM_TYPE=vm_type).problem("VM_TYPE")
    reserved = given(VM_TYPE=vm_type, RESERVATION_NAME="r").problem("RESERVATION_NAME")

    assert "is not available on demand" in on_demand.what
    assert on_demand.fix == "ENABLE_SPOT=yes or ENABLE_FLEX_START=yes"
    assert f"is not available for {vm_type}" in reserved.what
    assert "spot or flex start" in reserved.why
