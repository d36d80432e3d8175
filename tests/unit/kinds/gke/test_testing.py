"""Test of a cluster with several pools: which come when, who waits, what fails, who is cordoned."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from provision.catalogue import prices
from provision.documents.checks import NodeCheck, RayCheck
from provision.errors import (
    CapacityError,
    ClusterError,
    ProvisionError,
    SettingsError,
    StillWaiting,
)
from provision.kinds.gke import control_plane, testing
from provision.kinds.gke.kubernetes import all_gather, trials
from provision.kinds.gke.kubernetes.all_gather import Measurement, Told
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.nodes import Node
from provision.kinds.gke.kubernetes.objects import Object
from provision.kinds.gke.kubernetes.trials import Ran
from provision.lifecycle import pricing
from provision.spec.pools import Size
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.kubernetes import samples
from tests.table import cases
from tests.unit.kinds.cases import having, problem_of

ONE = dataclasses.replace(samples.facts(samples.MEGA), ray_operator=False)
FACTS = dataclasses.replace(ONE, pools=(samples.L4, samples.MEGA))
TABLE = (Path(__file__).parent / "kubernetes" / "a3-ultra-all-gather.log").read_text()
POOL = "cloud.google.com/gke-nodepool"


def _log(pool: GpuPool, errors: int = 0) -> str:
    name = {"demo-l4": "NVIDIA L4", "demo-mega": "NVIDIA H100 80GB HBM3"}[pool.name]
    gpus = [f"aiinfra-gpu {name}, 580.95.05, {errors}"] * pool.gpus
    return "\n".join([f"aiinfra-interfaces h {pool.interfaces}", *gpus, ""])


class World:
    """A cluster with its context; pools answer as they are told to."""

    def __init__(
        self, patch: pytest.MonkeyPatch, facts: ClusterFacts = FACTS, *, cordon: bool = False
    ) -> None:
        self.waits: dict[str, float] = {}
        self.merged: list[tuple[str, Object]] = []
        self.nodes: list[Object] = []
        self.answers: dict[str, ProvisionError | int] = {}
        self.told: list[str] = []
        asked = {"capacity_timeout": 600, "test_pool": None, "test_nodes": 2}
        console = {"show": lambda *_, **__: None, "result": lambda _: None, "width": 100}
        self.report = having(checks=None)
        self.context = having(
            settings=having(**asked, test_cordon=cordon, model_fields_set=set()),
            console=having(progress=self.told.append, **console),
            report=self.report,
            environ={},
            progress=Progress(Clock(0), self.told.append),
        )
        cluster = having(all=self._all, merge=self._merge, find=lambda *_: None)
        for name, found in (("kept", facts), ("find", {}), ("reach", cluster)):
            patch.setattr(control_plane, name, lambda *_, found=found: found)
        patch.setattr(pricing, "known", lambda *_: None)
        patch.setattr(trials, "bandwidth", self._run)

    def run(self) -> str:
        """What Test says of a cluster without faults."""
        record = having(name_prefix="demo", settings={"GPU_COUNT": 8})
        return testing.run(self.context, having(folder=None, api=None), record)

    def fails(self) -> ProvisionError:
        """The error that Test ends with."""
        with pytest.raises(ProvisionError) as caught:
            self.run()
        return caught.value

    def _all(self, _: str, kind: str, selector: str = "") -> list[Object]:
        assert kind == "Node"
        pool = selector.partition("=")[2]
        return [it for it in self.nodes if it["metadata"]["labels"][POOL] == pool]

    def _merge(self, _: str, kind: str, name: str, change: Object) -> bool:
        assert kind == "Node"
        self.merged.append((name, change))
        return True

    def _run(self, _cluster: object, _facts: object, pool: GpuPool, nodes: int, **how: Any) -> Ran:
        self.waits[pool.name] = how["timeout"]
        answer = self.answers.get(pool.name, 0)
        if isinstance(answer, ProvisionError):
            raise answer
        names = tuple(f"{pool.name}-{number}" for number in range(nodes))
        # The table is that of a faster machine.
        first = _log(pool, answer) + TABLE
        return Ran(nodes=names, logs=(first, *[_log(pool)] * (nodes - 1)), waited=100)


def _node(name: str, *, cordoned: bool) -> Object:
    metadata = {"name": name, "labels": {POOL: "demo-mega"}}
    return {"metadata": metadata, "spec": {"unschedulable": cordoned}, "status": {}}


def test_all_pools_are_tested_and_share_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    said = world.run().splitlines()
    assert [line.partition(":")[0] for line in said] == ["demo-l4", "demo-mega"]
    # Half of all for the first; what that has left is the other's.
    assert world.waits == {"demo-l4": 300, "demo-mega": 500}
    assert list(world.report.checks) == ["demo-l4", "demo-mega"]
    assert world.told[0].startswith(
        "Test of 2 pools, the cheapest first: demo-l4 (2 nodes, 2 GPUs)"
    )


def test_a_pool_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, none = StillWaiting("no nodes"), CapacityError("none")
    for first, second, kind in (
        (waits, 0, StillWaiting), (waits, none, CapacityError), (none, 17, ClusterError)
    ):  # fmt: skip
        world = World(monkeypatch)
        world.answers = {"demo-l4": first, "demo-mega": second}
        error = world.fails()
        assert type(error) is kind
        assert list(world.waits) == ["demo-l4", "demo-mega"]
        assert {problem.what[:5] for problem in error.problems} == {"demo-"}
        assert len(error.problems) == 1 + bool(second)


@pytest.mark.parametrize("cordoned", [[], ["demo-mega-0"]], ids=["not-asked", "asked"])
def test_a_bad_node_is_cordoned_when_asked_and_never_unasked(
    monkeypatch: pytest.MonkeyPatch, cordoned: list[str]
) -> None:
    world = World(monkeypatch, ONE, cordon=bool(cordoned))
    world.answers = {"demo-mega": 17}
    (problem,) = world.fails().problems
    assert problem.what.startswith("demo-mega-0: 136 uncorrected memory (ECC) errors")
    assert [name for name, _ in world.merged] == cordoned
    assert ("it is cordoned" in problem.fix) is bool(cordoned)
    assert list(world.report.checks["demo-mega"].cordoned) == cordoned


def test_nodes_that_are_cordoned_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ONE)
    world.nodes = [_node("a", cordoned=True), _node("b", cordoned=False)]
    assert "demo-mega: 1 node with 8 GPUs: no faults" in world.run()
    world.nodes = [_node(name, cordoned=True) for name in ("a", "b")]
    (problem,) = world.fails().problems
    assert problem.what == "No node of demo-mega can be tested: all are cordoned"
    assert problem.fix == "kubectl uncordon a b"


def test_what_was_measured_is_told_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise StillWaiting("No nodes came for the test through Ray in time")

    world = World(monkeypatch, dataclasses.replace(ONE, ray_operator=True))
    monkeypatch.setattr(trials, "ray", none)
    assert "through Ray" in world.fails().problems[0].what
    assert world.report.checks["demo-mega"].peak_in_place == 335.67


# ------------------------------------------------------------------ which pools

ARM = samples.pool_like(
    samples.ULTRA, name="demo-gb200", machine_type="a4x-highgpu-4g", accelerator="nvidia-gb200"
)
MIXED = samples.facts(samples.MEGA, samples.L4, ARM, samples.HIGH)


MADE = {it.name: samples.as_spec(it, Size(count=it.max_nodes)) for it in MIXED.pools}


def _names(parts: list[testing.Part]) -> list[str]:
    return [part.pool.name for part in parts]


def test_pools_that_can_be_tested_come_the_cheapest_first_and_what_they_take_is_said() -> None:
    parts = testing.chosen(MIXED, None, "demo", MADE, prices.listed())
    assert _names(parts) == ["demo-l4", "demo-high", "demo-mega"]
    costs = [part.per_hour for part in parts]
    assert None not in costs
    assert costs == sorted(costs, key=lambda it: it or 0)
    parts = testing.chosen(MIXED, None, "demo", {}, None)
    assert _names(parts) == ["demo-l4", "demo-mega", "demo-high"]
    assert {part.per_hour for part in parts} == {None}
    one = testing.chosen(samples.facts(samples.MEGA), None, "demo", {}, None)
    assert testing.told(one, 7200) == (
        "Test of demo-mega (2 nodes, 16 GPUs); waits for nodes at most 2 h 0 min, measures at most"
        " 30 min"
    )
    several = testing.told(testing.chosen(MIXED, None, "demo", MADE, prices.listed()), 600)
    assert several.startswith("Test of 3 pools, the cheapest first: demo-l4 (2 nodes, 2 GPUs, ")
    assert several.endswith(
        "; waits for nodes at most 10 min in all, each is measured at most 30 min"
    )
    assert several.count("/h)") == 3


def test_one_pool_is_chosen_by_its_full_name_or_its_own_if_it_is_there_and_has_an_image() -> None:
    for asked in ("high", "demo-high"):
        assert _names(testing.chosen(MIXED, asked, "demo", MADE, None)) == ["demo-high"]
    for asked in ("gone", "gb200"):
        problem = problem_of(SettingsError, testing.chosen, MIXED, asked, "demo", MADE, None)
        assert problem.setting == "--pool"
        assert "demo-high, demo-l4, demo-mega" in problem.why


GOOD = all_gather.parse(TABLE)
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


def test_good_nodes_pass_beside_the_figure_that_is_published_if_one_is() -> None:
    tested = _tested(GOOD, "ab")
    assert not list(testing.problems(tested))
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
    used = {"test-w-0-0": ("Socket",)}
    slow = dataclasses.replace(_with(0.01), used=used)
    tested = _tested(slow, "ab", pool=samples.L4, checked={})
    assert not list(testing.problems(tested))
    assert "without a verdict: no figure is published" in testing.passed(tested)
    tested = _tested(GOOD, "a")
    assert not list(testing.problems(tested))
    assert testing.passed(tested).endswith("one node has no network to measure")
    (problem,) = testing.problems(_tested(all_gather.parse(""), "a"))
    assert problem.what == "a: the measurement did not end, or failed"


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


def test_of_two_nodes_neither_is_blamed_and_for_sockets_only_the_one_that_uses_them_alone() -> None:
    tested = _tested(_with(0.5), "ab")
    (problem,) = testing.problems(tested)
    assert problem.what.startswith("between a, b: ")
    assert "Test --nodes 3" in problem.fix
    assert tested.bad == ()
    used = {f"test-w-0-{number}": ("Socket",) for number in range(2)}
    (problem,) = testing.problems(_tested(dataclasses.replace(_with(0.05), used=used), "ab"))
    assert problem.what == "NCCL used plain sockets instead of the GPU network"
    used = {"test-w-0-0": ("gIB",), "test-w-0-1": ("Socket",)}
    found = testing._on_sockets(dataclasses.replace(GOOD, used=used), samples.ULTRA, 2)
    assert found[1] == {1}


@cases("""
mode              | words
standard          | gcloud compute instances delete b --zone us-central1-a
spot              | gcloud compute instances delete b --zone us-central1-a
reservation_bound | kubectl label nodes b cloud.google.com/fault-behavior=PERFORMANCE
flex_start        | the next request brings another
queued            | the next request brings another
""")
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


def test_nodes_that_kubernetes_calls_broken_take_no_part_and_what_fails_through_ray_fails() -> None:
    unfit = testing.unfit([Node(name="x", gpus=8, usable=6), Node(name="y")], samples.ULTRA)
    tested = testing.Tested(pool=samples.ULTRA, nodes=(), told=None, checked=unfit)
    (problem,) = testing.problems(tested)
    assert problem.what == "x: it offers 6 GPUs instead of 8"
    assert tested.document.nodes == 0
    failed = RayCheck(passed=False, gpus={}, why="Ray found 8 of 16 GPUs")
    tested = dataclasses.replace(_tested(GOOD, "ab"), ray=failed)
    (problem,) = testing.problems(tested)
    assert "Ray found 8 of 16 GPUs" in problem.what
    well = dataclasses.replace(tested, ray=RayCheck(passed=True, gpus={"a": 8, "b": 8}))
    assert "and Ray has used each" in testing.passed(well)
