"""What exists costs by the hour and has cost so far, and what is unknown is never nothing."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.catalogue import prices
from provision.kinds import status
from provision.kinds.gke import status as gke_status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.nodes import Node, Nodes
from provision.kinds.gke.kubernetes.status import Status
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size
from provision.state.record import Record
from provision.time.clock import Clock

if TYPE_CHECKING:
    from provision.documents.cost import Cost
    from provision.documents.status import SoFar

POOL = Pool(
    name="np-mig",
    machine_type="a2-highgpu-1g",
    zone="us-central1-a",
    gpu_type="nvidia-tesla-a100",
    gpu_count=1,
    size=Size(count=4),
    disk_size_gb=100,
    disk_type="pd-ssd",
)
PLACE = {"project_id": "p", "name_prefix": "np", "region": "us-central1", "zone": "us-central1-a"}


def _bill(
    *pools: Pool, age: float | None = 10.0, ages: dict[str, list[float]], **changes: Any
) -> tuple[Cost, SoFar]:
    existing = status.Existing(**{**PLACE, "machines": pools, "ages": ages, "age": age, **changes})
    cost, so_far = status.cost_of(existing, prices.listed())
    assert cost is not None
    assert so_far is not None
    return cost, so_far


def test_each_machine_is_billed_since_it_came_and_only_those_that_run_cost_now() -> None:
    cost, so_far = _bill(POOL, ages={"np-mig": [1.0, 3.0]})
    each = cost.now.per_hour / 2
    assert each > 3
    assert cost.most.per_hour == pytest.approx(4 * each, rel=Decimal("0.0001"))
    assert so_far.usd == (4 * each).quantize(Decimal("0.01"))
    assert so_far.hours == 10
    assert so_far.unknown == ()


def test_a_group_whose_request_waits_costs_nothing_so_far() -> None:
    waiting = dataclasses.replace(POOL, mode=Mode.FLEX_START)
    cost, so_far = _bill(waiting, ages={"np-mig": []})
    assert cost.now.per_hour == 0
    assert so_far.usd == 0
    assert cost.most.per_hour > 0


def test_what_has_no_price_is_named_and_makes_the_sum_a_minimum() -> None:
    odd = dataclasses.replace(POOL, name="odd", machine_type="x9-wonder-1g", gpu_type=None)
    cost, so_far = _bill(POOL, odd, ages={"np-mig": [1.0], "odd": [1.0]})
    assert any("x9-wonder-1g" in name for name in cost.now.unknown)
    assert any("x9-wonder-1g" in name for name in so_far.unknown)
    assert so_far.usd > 0


@pytest.mark.parametrize(("rest", "unknown"), [(5.0, 0), (None, 2)])
def test_a_control_plane_and_a_nat_are_billed_since_the_cluster_came(
    rest: float | None, unknown: int
) -> None:
    cost, so_far = _bill(
        POOL, age=rest, ages={"np-mig": [2.0]}, has_control_plane=True, network_is_made=True
    )
    parts = [part for part in cost.parts if part.pool is None]
    assert len(parts) == 2
    assert len(so_far.unknown) == unknown


def test_node_pools_are_billed_as_google_has_them_now() -> None:
    texts = dict.fromkeys(("kind", "cluster_id", "tool_version", "terraform_version"), "x")
    record = Record(**cast("Any", PLACE | texts))
    gpus = GpuPool(
        name="np-gpu",
        machine_type="a2-highgpu-1g",
        accelerator="nvidia-tesla-a100",
        gpus=1,
        max_nodes=4,
        mode="queued",
    )
    facts = ClusterFacts(
        project="p",
        name="np-gke",
        location="us-central1",
        version="1.35.7-gke.1222000",
        pools=(gpus,),
        workload_account="a",
    )
    scaling = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    config = {"machineType": "a2-highgpu-1g", "diskSizeGb": 200, "diskType": "pd-ssd"}
    small = {"machineType": "e2-standard-4", "spot": True}
    document = {
        "createTime": "2026-11-22T08:00:00Z",
        "nodePools": [
            {
                "name": "np-gpu",
                "config": config,
                "locations": ["us-central1-a"],
                "autoscaling": scaling,
            },
            {
                "name": "np-system",
                "config": small,
                "locations": ["us-central1-b"],
                "initialNodeCount": 2,
            },
        ],
    }
    node = Node(name="n", created="2026-11-22T08:00:00Z")
    told = Status(nodes=(Nodes(pool="np-system", each=(node, node)),), workloads=(), requests=())
    existing = gke_status.existing(record, document, facts, told, Clock())
    cost, so_far = status.cost_of(existing, prices.listed())
    assert cost is not None
    assert so_far is not None
    now = {(part.pool, part.name): part.now for part in cost.parts}
    assert now["np-gpu", "0 to 4 x a2-highgpu-1g, queued"] == 0
    system = next(usd for (pool, name), usd in now.items() if "e2-standard-4" in name)
    assert system is not None
    assert system > 0
    assert cost.most.per_hour > cost.now.per_hour
    assert so_far.usd > 0
    assert gke_status.existing(record, None, facts, told, Clock()) is None


def test_without_prices_or_without_a_record_nothing_is_said_of_cost() -> None:
    existing = status.Existing(**cast("Any", {**PLACE, "machines": (), "ages": {}, "age": None}))
    assert status.cost_of(existing, None) == (None, None)
    assert status.cost_of(None, prices.listed()) == (None, None)
