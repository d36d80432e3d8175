from __future__ import annotations

from typing import Any

import pytest

from provision.kinds.gke.kubernetes import node_checks, nodes
from tests.kubernetes import samples

H200 = "NVIDIA H200, 580.95.05, 0"
GOOD = ["aiinfra-interfaces w-0-1 10", *(f"aiinfra-gpu {H200}" for _ in range(8))]


def _log(*lines: str) -> str:
    return "\n".join(["something else", *lines, ""])


def test_a_node_that_is_as_its_machine_promises_has_no_faults() -> None:
    check = node_checks.of_log(_log(*GOOD), samples.ULTRA)
    assert check.faults == ()
    assert (check.gpus, check.driver, check.ecc_errors, check.interfaces) == (8, "580.95.05", 0, 10)
    assert check.names == ("NVIDIA H200",) * 8


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (GOOD[:-1], "7 GPUs instead of 8"),
        (
            [*GOOD[:-1], "aiinfra-gpu NVIDIA H200, 580.95.05, 3"],
            "3 uncorrected memory",
        ),
        ([*GOOD[:-1], "aiinfra-gpu NVIDIA H100 80GB HBM3, 580.95.05, 0"], "instead of H200"),
        (["aiinfra-interfaces w-0-1 9", *GOOD[1:]], "its pod has 9 of 10 network interfaces"),
        (
            [GOOD[0], "aiinfra-gpu Unable to determine the device handle for GPU0000:04:00.0"],
            "nvidia-smi failed: Unable to determine the device handle",
        ),
        ([], "it has told nothing of its GPUs"),
    ],
)
def test_each_fault_of_a_node_is_told(lines: list[str], fault: str) -> None:
    found = node_checks.of_log(_log(*lines), samples.ULTRA).faults
    assert any(fault in it for it in found), found


def test_gpus_that_count_no_errors_have_none() -> None:
    log = _log("aiinfra-interfaces w-0-0 1", "aiinfra-gpu Tesla T4, 580.95.05, [N/A]")
    check = node_checks.of_log(log, samples.T4)
    assert (check.faults, check.ecc_errors) == ((), None)


def _node(*, offered: str | None = "8", ready: str = "True", xid: str = "") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    if xid:
        conditions.append({"type": "XidCriticalError", "status": "True", "reason": xid})
    gpus = {} if offered is None else {"nvidia.com/gpu": offered}
    metadata = {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "p"}}
    return {"metadata": metadata, "status": {"conditions": conditions, "allocatable": gpus}}


@pytest.mark.parametrize(
    ("node", "faults"),
    [
        (_node(), ()),
        # The driver has not told of its GPUs yet.
        (_node(offered="0"), ()),
        (_node(offered=None, ready="False"), ()),
        (_node(offered="7"), ("it offers 7 GPUs instead of 8",)),
        (_node(xid='{"48":1,"79":2}'), ("a GPU has failed: XID 48, 79 (XidCriticalError)",)),
        (_node(xid="Unknown"), ("a GPU has failed: XID Unknown (XidCriticalError)",)),
    ],
)
def test_a_node_that_kubernetes_calls_broken_is_not_fit_for_a_test(
    node: dict[str, Any], faults: tuple[str, ...]
) -> None:
    ((read,),) = (it.each for it in nodes.read([node]))
    assert node_checks.of_node(read, samples.ULTRA) == faults
