from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from provision.kinds.gke.kubernetes import all_gather, nodes
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.all_gather import Measurement
    from provision.kinds.gke.kubernetes.facts import GpuPool


# The published result of two A3 Ultra nodes, among lines of other programs.
LOG = (Path(__file__).parent / "a3-ultra-all-gather.log").read_text(encoding="utf-8")


def test_the_published_table_is_read_to_the_last_digit() -> None:
    measured = all_gather.parse(LOG)
    assert measured.average == 120.248
    assert measured.out_of_bounds == 0
    assert (measured.peak_out_of_place, measured.peak_in_place) == (328.85, 335.67)
    assert [row.size for row in measured.rows] == [1024 << step for step in range(24)]
    assert measured.networks == ("gIB",)
    assert measured.used == {"w-0-0": ("gIB",)}


def test_the_table_is_shown_without_the_lines_around_it() -> None:
    lines = all_gather.parse(LOG).table.splitlines()
    assert len(lines) == 2 + 24 + 2
    assert lines[0].split()[:2] == ["#", "size"]
    assert lines[-1] == "# Avg bus bandwidth    : 120.248"


@pytest.mark.parametrize("average", ["120.248", "108.3"], ids=["published", "nine_tenths"])
def test_the_published_table_passes_on_its_machine(average: str) -> None:
    measured = all_gather.parse(LOG.replace(": 120.248", f": {average}"))
    assert all_gather.why_bad(measured, samples.ULTRA, 2) == ""


def test_more_than_two_nodes_are_judged_by_the_peak_of_two_and_not_by_the_average() -> None:
    measured = all_gather.parse(LOG.replace(": 120.248", ": 80.0"))
    assert all_gather.why_bad(measured, samples.ULTRA, 4) == ""
    assert "average" in all_gather.why_bad(measured, samples.ULTRA, 2)


def test_machines_without_a_reference_have_no_bar() -> None:
    slow = _slowed(all_gather.parse(LOG.replace("gIB", "Socket")), 0.01)
    assert all_gather.why_bad(slow, samples.T4, 2) == ""
    assert all_gather.bars(samples.T4, 2) == all_gather.Bars()


def test_one_node_has_no_network_to_judge() -> None:
    slow = all_gather.parse(LOG.replace(": 120.248", ": 12").replace("gIB", "Socket"))
    assert all_gather.why_bad(slow, samples.ULTRA, 1) == ""


@pytest.mark.parametrize(
    ("pool", "enough"),
    [
        (samples.HIGH, all_gather.Bars(out_of_place=63.81, in_place=64.215, average=27.864)),
        (samples.MEGA, all_gather.Bars(out_of_place=169.857, in_place=170.01, average=62.649)),
        (samples.ULTRA, all_gather.Bars(out_of_place=295.965, in_place=302.103, average=108.2232)),
        (samples.A4, all_gather.Bars(out_of_place=338.148, in_place=338.355)),
    ],
)
def test_each_machine_with_a_published_figure_has_its_bars_by_the_number_of_nodes(
    pool: GpuPool, enough: all_gather.Bars
) -> None:
    two, more = all_gather.bars(pool, 2), all_gather.bars(pool, 3)
    assert dataclasses.astuple(two) == pytest.approx(dataclasses.astuple(enough))
    assert more == dataclasses.replace(two, average=0.0)
    assert all_gather.bars(pool, 1) == all_gather.Bars()


@pytest.mark.parametrize(
    ("published", "other", "words"),
    [
        (": 120.248", ": 100.0", "average bus bandwidth is 100.0 GB/s, 83%"),
        ("values : 0 OK", "values : 7 FAILED", "7 wrong values"),
        ("335.67      0", "335.67      3", "3 wrong values"),
        ("# Avg", "# nothing", "did not end"),
        ("network gIB", "network Socket", "NCCL used plain sockets instead"),
    ],
)
def test_a_result_that_is_not_as_it_should_be_says_what_is_wrong(
    published: str, other: str, words: str
) -> None:
    assert published in LOG
    measured = all_gather.parse(LOG.replace(published, other))
    assert words in all_gather.why_bad(measured, samples.ULTRA, 2)


@pytest.mark.parametrize(("column", "name"), [(7, "out of place"), (11, "in place")])
def test_a_peak_that_is_too_low_is_named(column: int, name: str) -> None:
    lines = [_halved(line, column) for line in LOG.splitlines()]
    why = all_gather.why_bad(all_gather.parse("\n".join(lines)), samples.ULTRA, 2)
    assert f"its peak bus bandwidth {name} is 16" in why


def test_the_log_of_a_search_has_a_table_for_each_pair_and_the_nodes_that_did_not_answer() -> None:
    pair = "\n".join(_halved(line, 7) for line in LOG.splitlines())
    log = f"aiinfra-silent 3\n{LOG}\naiinfra-pair 0 1\n{pair}\naiinfra-pair 1 2\n{LOG}"
    told = all_gather.read(log)
    assert told.silent == (3,)
    assert told.whole == all_gather.parse(LOG)
    assert {pair: it.peak_out_of_place for pair, it in told.pairs.items()} == {
        (0, 1): 164.425,
        (1, 2): 328.85,
    }


def _slowed(measured: Measurement, part: float) -> Measurement:
    rows = tuple(
        dataclasses.replace(row, out_of_place=row.out_of_place * part, in_place=row.in_place * part)
        for row in measured.rows
    )
    return dataclasses.replace(measured, rows=rows)


def _halved(line: str, column: int) -> str:
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return line
    words[column] = str(float(words[column]) / 2)
    return " ".join(words)


H200 = "NVIDIA H200, 580.95.05, 0"
GOOD = ["aiinfra-interfaces w-0-1 10", *(f"aiinfra-gpu {H200}" for _ in range(8))]


def _log(*lines: str) -> str:
    return "\n".join(["something else", *lines, ""])


def test_a_node_that_is_as_its_machine_promises_has_no_faults() -> None:
    check = all_gather.of_log(_log(*GOOD), samples.ULTRA)
    assert check.faults == ()
    assert (check.gpus, check.driver, check.ecc_errors, check.interfaces) == (8, "580.95.05", 0, 10)
    assert check.names == ("NVIDIA H200",) * 8


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (GOOD[:-1], "7 GPUs instead of 8"),
        ([*GOOD[:-1], "aiinfra-gpu NVIDIA H200, 580.95.05, 3"], "3 uncorrected memory"),
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
    found = all_gather.of_log(_log(*lines), samples.ULTRA).faults
    assert any(fault in it for it in found), found


def test_gpus_that_count_no_errors_have_none() -> None:
    log = _log("aiinfra-interfaces w-0-0 1", "aiinfra-gpu Tesla T4, 580.95.05, [N/A]")
    check = all_gather.of_log(log, samples.T4)
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
    assert all_gather.of_node(read, samples.ULTRA) == faults
