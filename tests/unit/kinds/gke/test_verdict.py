from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.documents.checks import NodeCheck, RayCheck
from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes import all_gather
from provision.kinds.gke.kubernetes.all_gather import Measurement, Told
from provision.kinds.gke.kubernetes.nodes import Node
from tests.kubernetes import samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import GpuPool

GOOD = all_gather.parse(
    (Path(__file__).parent / "kubernetes" / "a3-ultra-all-gather.log").read_text(encoding="utf-8")
)
WELL = NodeCheck(gpus=8, interfaces=10)


def _with(part: float) -> Measurement:
    rows = tuple(
        dataclasses.replace(row, out_of_place=row.out_of_place * part, in_place=row.in_place * part)
        for row in GOOD.rows
    )
    return dataclasses.replace(GOOD, rows=rows)


def _tested(
    whole: Measurement,
    nodes: str = "abc",
    *,
    pairs: Mapping[tuple[int, int], Measurement] | None = None,
    pool: GpuPool = samples.ULTRA,
    checked: Mapping[str, NodeCheck] | None = None,
) -> testing.Tested:
    told = Told(whole=whole, pairs=pairs or {}, silent=())
    known = dict.fromkeys(nodes, WELL) | dict(checked or {})
    zones = dict.fromkeys(nodes, "us-central1-a")
    return testing.Tested(pool=pool, nodes=tuple(nodes), told=told, checked=known, zones=zones)


def test_good_nodes_pass_beside_the_published_figure() -> None:
    tested = _tested(GOOD, "ab")
    assert testing.problems(tested) == []
    assert testing.passed(tested) == (
        "demo-h200: 2 nodes with 16 GPUs: no faults; all_gather reaches 335.7 GB/s, 100% of the"
        " 335.67 GB/s published for 2: good"
    )
    assert "published for 2 (none is for more)" in testing.passed(_tested(GOOD))
    document = tested.document
    assert (document.expected, document.faulty, document.interfaces) == (
        335.67,
        (),
        {"a": 10, "b": 10},
    )


def test_the_node_at_fault_is_named_with_what_it_reached_and_what_helps() -> None:
    slow = _with(0.5)
    tested = _tested(slow, pairs={(0, 1): slow, (1, 2): slow, (2, 0): GOOD})
    (problem,) = testing.problems(tested)
    assert problem.what.startswith(
        "b is at fault: its peak bus bandwidth out of place is 164.4 GB/s"
    )
    assert "50% of the 328.85 GB/s published" in problem.what
    assert "is 302.1 GB/s" in problem.why
    assert "kubectl cordon b" in problem.fix
    assert "the next request brings another" in problem.fix
    assert tested.bad == ("b",)
    assert tested.why("b").startswith("its peak")


def test_of_two_nodes_neither_is_blamed() -> None:
    tested = _tested(_with(0.5), "ab")
    (problem,) = testing.problems(tested)
    assert problem.what.startswith("between a, b: ")
    assert "Test --nodes 3" in problem.fix
    assert tested.bad == ()


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("standard", "gcloud compute instances delete b --zone us-central1-a"),
        ("spot", "gcloud compute instances delete b --zone us-central1-a"),
        ("reservation_bound", "kubectl label nodes b cloud.google.com/fault-behavior=PERFORMANCE"),
        ("flex_start", "the next request brings another"),
        ("queued", "the next request brings another"),
    ],
)
def test_what_replaces_a_node_depends_on_how_its_pool_gets_nodes(mode: str, words: str) -> None:
    bad = NodeCheck(gpus=7, faults=("7 GPUs instead of 8",))
    pool = samples.pool_like(samples.ULTRA, mode=mode)
    tested = _tested(GOOD, "ab", pool=pool, checked={"b": bad})
    (problem,) = testing.problems(tested)
    assert problem.what == "b: 7 GPUs instead of 8"
    assert "keep jobs away: kubectl cordon b, or Test --cordon" in problem.fix
    assert words in problem.fix
    (problem,) = testing.problems(dataclasses.replace(tested, cordoned=("b",)))
    assert problem.fix.startswith("it is cordoned (undo: kubectl uncordon b)")


def test_plain_sockets_everywhere_are_no_single_nodes_fault() -> None:
    used = {f"test-w-0-{number}": ("Socket",) for number in range(2)}
    (problem,) = testing.problems(_tested(dataclasses.replace(_with(0.05), used=used), "ab"))
    assert problem.what == "NCCL used plain sockets instead of the GPU network"


def test_plain_sockets_on_one_node_alone_are_its_fault() -> None:
    used = {"test-w-0-0": ("gIB",), "test-w-0-1": ("Socket",)}
    found = testing._on_sockets(dataclasses.replace(GOOD, used=used), samples.ULTRA, 2)
    assert found[1] == {1}


def test_machines_without_a_published_figure_pass_without_a_verdict() -> None:
    used = {"test-w-0-0": ("Socket",)}
    slow = dataclasses.replace(_with(0.01), used=used)
    tested = _tested(slow, "ab", pool=samples.L4, checked={})
    assert testing.problems(tested) == []
    assert "without a verdict: no figure is published" in testing.passed(tested)


def test_a_single_node_has_no_network_and_fails_by_itself_alone() -> None:
    tested = _tested(GOOD, "a")
    assert testing.problems(tested) == []
    assert testing.passed(tested).endswith("one node has no network to measure")
    (problem,) = testing.problems(_tested(all_gather.parse(""), "a"))
    assert problem.what == "a: the measurement did not end, or failed"


def test_nodes_that_kubernetes_calls_broken_take_no_part_and_are_told() -> None:
    unfit = testing.unfit([Node(name="x", gpus=8, usable=6), Node(name="y")], samples.ULTRA)
    tested = testing.Tested(pool=samples.ULTRA, nodes=(), told=None, checked=unfit)
    (problem,) = testing.problems(tested)
    assert problem.what == "x: it offers 6 GPUs instead of 8"
    assert tested.document.nodes == 0


def test_what_failed_through_ray_fails_the_test() -> None:
    failed = RayCheck(passed=False, gpus={}, why="Ray found 8 of 16 GPUs")
    tested = dataclasses.replace(_tested(GOOD, "ab"), ray=failed)
    (problem,) = testing.problems(tested)
    assert "Ray found 8 of 16 GPUs" in problem.what
    well = dataclasses.replace(tested, ray=RayCheck(passed=True, gpus={"a": 8, "b": 8}))
    assert "and Ray has used each" in testing.passed(well)
