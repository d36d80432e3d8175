"""Test of a cluster with several pools: which come when, who waits, what fails, who is cordoned."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.catalogue import prices
from provision.errors import (
    CapacityError,
    ClusterError,
    ProvisionError,
    SettingsError,
    StillWaiting,
)
from provision.kinds.gke import control_plane, testing
from provision.kinds.gke.kubernetes import trials
from provision.kinds.gke.kubernetes.trials import Ran
from provision.lifecycle import pricing
from provision.spec.pools import Size
from provision.time.clock import Clock
from provision.time.progress import Progress
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

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
        self,
        monkeypatch: pytest.MonkeyPatch,
        facts: ClusterFacts = FACTS,
        *,
        cordon: bool = False,
    ) -> None:
        self.waits: dict[str, float] = {}
        self.merged: list[tuple[str, Object]] = []
        self.nodes: list[Object] = []
        self.answers: dict[str, ProvisionError | int] = {}
        self.told: list[str] = []
        settings = SimpleNamespace(
            capacity_timeout=600,
            test_pool=None,
            test_cordon=cordon,
            test_nodes=2,
            model_fields_set=set(),
        )
        console = SimpleNamespace(
            progress=self.told.append, show=lambda *_, **__: None, result=lambda _: None, width=100
        )
        self.report = SimpleNamespace(checks=None)
        self.context = SimpleNamespace(
            settings=settings,
            console=console,
            report=self.report,
            environ={},
            progress=Progress(Clock(0), self.told.append),
        )
        cluster = SimpleNamespace(all=self._all, merge=self._merge, find=lambda *_: None)
        monkeypatch.setattr(control_plane, "kept", lambda *_: facts)
        monkeypatch.setattr(control_plane, "find", lambda *_: {})
        monkeypatch.setattr(control_plane, "reach", lambda *_: cluster)
        monkeypatch.setattr(pricing, "known", lambda *_: None)
        monkeypatch.setattr(trials, "bandwidth", self._run)

    def run(self) -> str:
        """What Test says of a cluster without faults."""
        cloud = SimpleNamespace(folder=None, api=None)
        record = SimpleNamespace(name_prefix="demo", settings={"GPU_COUNT": 8})
        return testing.run(cast("Any", self.context), cast("Any", cloud), cast("Any", record))

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


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ({"demo-l4": StillWaiting("no nodes")}, StillWaiting),
        ({"demo-l4": StillWaiting("no nodes"), "demo-mega": CapacityError("none")}, CapacityError),
        ({"demo-l4": CapacityError("none"), "demo-mega": 17}, ClusterError),
    ],
)
def test_a_pool_that_fails_stops_no_other_and_all_of_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, ProvisionError | int],
    kind: type[ProvisionError],
) -> None:
    world = World(monkeypatch)
    world.answers = answers
    error = world.fails()
    assert type(error) is kind
    assert list(world.waits) == ["demo-l4", "demo-mega"]
    assert {problem.what[:5] for problem in error.problems} == {"demo-"}
    assert len(error.problems) == len(answers)


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


def test_what_was_measured_is_told_though_ray_gets_no_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_every_pool_that_can_be_tested_comes_the_cheapest_first() -> None:
    parts = testing.chosen(MIXED, None, "demo", MADE, prices.listed())
    assert _names(parts) == ["demo-l4", "demo-high", "demo-mega"]
    costs = [part.per_hour for part in parts]
    assert None not in costs
    assert costs == sorted(costs, key=lambda it: it or 0)


def test_without_prices_the_fewest_gpus_come_first() -> None:
    parts = testing.chosen(MIXED, None, "demo", {}, None)
    assert _names(parts) == ["demo-l4", "demo-mega", "demo-high"]
    assert {part.per_hour for part in parts} == {None}


@pytest.mark.parametrize("asked", ["high", "demo-high"])
def test_one_pool_is_chosen_by_its_full_name_or_its_own(asked: str) -> None:
    assert _names(testing.chosen(MIXED, asked, "demo", MADE, None)) == ["demo-high"]


@pytest.mark.parametrize("asked", ["gone", "gb200"])
def test_a_pool_that_is_not_there_or_has_no_image_is_refused(asked: str) -> None:
    with pytest.raises(SettingsError) as caught:
        testing.chosen(MIXED, asked, "demo", MADE, None)
    (problem,) = caught.value.problems
    assert problem.setting == "--pool"
    assert "demo-high, demo-l4, demo-mega" in problem.why


def test_what_a_test_takes_is_said_in_one_sentence() -> None:
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
