"""What Status tells of every kind of cluster: who changes it, and the end of its reservations."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from provision.catalogue import prices
from provision.deployment.kind import Kind
from provision.documents.cost import Cost
from provision.documents.status import About, EndedBy, SoFar, Status, Trouble
from provision.files import private
from provision.google.api import GoogleApiError
from provision.kinds import status
from provision.kinds.gke import status as gke_status
from provision.kinds.gke.kubernetes import status as kubernetes_status
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.nodes import Node, Nodes
from provision.spec.capacity import Mode
from provision.spec.cluster import ClusterSpec
from provision.spec.pools import Pool, Size
from provision.state import liveness
from provision.state.location import StateLocation
from provision.state.record import Record, Reserved
from provision.terraform.lock import Lock
from provision.time.clock import Clock
from tests.unit.kinds.cases import having

NOW = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.000000000 +0000 UTC")
LOCK = Lock("gs://b/lock", "OperationTypeApply", "ann@laptop", NOW, "1-2")
RESERVED = {"np-mig": Reserved(reservation="projects/the-owner/reservations/r", bound=True)}


class Folder:
    """A state folder with a few resources, which somebody may be changing."""

    location = StateLocation("b", "np-deployment", is_default=False)

    notes: Mapping[str, liveness.Note] = MappingProxyType({})

    def __init__(self, lock: Lock | None, *, is_empty: bool) -> None:
        self._lock = lock
        self._is_empty = is_empty

    def lock(self) -> Lock | None:
        return self._lock

    def read(self, _: object) -> None:
        return None

    def all(self, _: object) -> Mapping[str, liveness.Note]:
        return self.notes

    def outputs(self) -> dict[str, Any]:
        share = {"name": "np-nfs", "path": "/data", "ip": "10.0.0.2", "share": "vol"}
        return {"filestores": [share], "dashboard": {"url": "https://dashboard"}}

    def addresses(self) -> set[str]:
        return set() if self._is_empty else {"module.b.thing.x", "module.a.thing.x"}

    def serial(self) -> int:
        return 7

    def last_log(self) -> str | None:
        return None


class Api:
    """A Google with one reservation."""

    def __init__(self, end: str | None) -> None:
        self._end = end
        self.asked = ""

    def find(self, _service: object, path: str) -> dict[str, Any]:
        self.asked = path
        if self._end is None:
            raise GoogleApiError(403, "no", path)
        return {"deleteAtTime": self._end}


class AnyKind:
    """A kind whose clusters have nothing of their own to tell, but what of them is not there."""

    def __init__(self, *trouble: Trouble) -> None:
        self._trouble = trouble

    def status(self, *_arguments: object) -> Status:
        return Status(words="things", trouble=self._trouble)

    def page(self, _record: Record) -> tuple[str, str]:
        return "Things", "things/np"


def _look(
    lock: Lock | None = None,
    api: Api | None = None,
    *,
    is_empty: bool = False,
    notes: Mapping[str, liveness.Note] = MappingProxyType({}),
    trouble: tuple[Trouble, ...] = (),
    **changes: Any,
) -> Status:
    texts = dict.fromkeys(("cluster_id", "tool_version", "terraform_version", "region"), "x")
    usual = {"kind": "mig", "project_id": "p", "name_prefix": "np", "zone": "us-central1-a"}
    record = Record(**cast("Any", texts | usual | changes))
    folder = Folder(lock, is_empty=is_empty)
    folder.notes = notes
    cloud = having(folder=folder, api=api or Api(None), lists=None)
    kind = cast("Kind[ClusterSpec]", AnyKind(*trouble))
    return status.look(having(clock=Clock()), cloud, record, kind)


def test_what_every_kind_has_is_told_and_a_run_that_holds_the_lock() -> None:
    found = _look()
    assert (found.kind, found.words, found.name, found.zone) == (
        "mig",
        "things",
        "np",
        "us-central1-a",
    )
    assert found.resources == ("module.a.thing.x", "module.b.thing.x")
    assert found.links["Things"] == "https://console.cloud.google.com/things/np?project=p"
    assert found.links["Dashboard"] == "https://dashboard"
    assert [share.ip for share in found.filestores] == ["10.0.0.2"]
    assert not found.is_pending
    found = _look(LOCK)
    assert found.locked_by == "ann@laptop"
    (one,) = found.waiting
    assert one.about is About.LOCK
    assert "ann@laptop is changing it" in one.what
    assert "--break-lock 1-2" in one.advice
    assert found.is_pending


@pytest.mark.parametrize("created", ["2026-11-22 09:00:00.12 +0000 UTC", "2026-11-22T09:00:00Z"])
def test_a_lock_that_is_held_for_a_day_is_trouble_and_no_run_that_is_waited_for(
    created: str,
) -> None:
    found = _look(dataclasses.replace(LOCK, created=created))
    (one,) = found.trouble
    assert "ann@laptop holds the lock since 2026-11-22" in one.what
    assert "--break-lock 1-2" in one.fix
    assert found.waiting == ()
    assert _look(dataclasses.replace(LOCK, created="unknown")).trouble == ()


def test_what_is_not_there_yet_is_no_trouble_while_a_run_makes_it_and_is_once_that_was_killed(
    tmp_path: Path,
) -> None:
    gone = Trouble(about=About.MACHINES, what="no group", why=(status.NOT_THERE,), fix="run Create")
    assert _look(trouble=(gone,)).trouble == (gone,)
    made = _look(LOCK, trouble=(gone, dataclasses.replace(gone, why=("it failed",))))
    assert [it.why for it in made.trouble] == [("it failed",)]
    assert made.is_pending

    file = tmp_path / private.ALIVE
    file.touch()
    note = liveness.Note(machine=liveness.Machine.here(), alive=str(file), lock_id=LOCK.id)
    killed = _look(LOCK, trouble=(gone,), notes={"n": note})
    left, also = killed.trouble
    assert (also, killed.waiting) == (gone, ())
    assert left.what.startswith("a run was killed that was changing it since")
    assert left.fix.startswith("run Create --yes to go on, or Destroy --yes")


def test_a_state_that_is_gone_is_told_but_while_somebody_may_be_making_it() -> None:
    (one,) = _look(is_empty=True).trouble
    assert "Terraform's state" in one.what
    assert one.fix.startswith("run Create")
    assert _look(LOCK, is_empty=True).trouble == ()
    assert _look().trouble == ()


def test_a_state_that_is_older_than_the_last_create_left_it_is_told() -> None:
    assert _look(serial=7).trouble == ()
    (one,) = _look(serial=8).trouble
    assert "older than what the last Create has left" in one.what
    assert one.fix.startswith("run Plan")


def test_the_end_of_a_reservation_is_asked_of_its_owner() -> None:
    api = Api("2097-01-01T00:00:00Z")
    (end,) = _look(api=api, reservations=RESERVED).ends
    assert api.asked == "projects/the-owner/zones/us-central1-a/reservations/r"
    assert (end.what, end.how) == ("the reservation r", EndedBy.RESERVATION)
    assert end.first == "2097-01-01T00:00:00Z"
    for without in (None, ""):  # it may not be read, or has no end
        assert _look(api=Api(without), reservations=RESERVED).ends == ()


def test_a_rehearsed_end_is_by_the_clouds_clock(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("3600 1800003600")
    end = status.moment(7200, Clock(0.02, file))
    assert dt.datetime.fromisoformat(end).timestamp() == 1_800_000_000 + 7200


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


def test_machines_are_billed_since_they_came_and_what_has_no_price_is_said_to_have_none() -> None:
    cost, so_far = _bill(POOL, ages={"np-mig": [1.0, 3.0]})
    each = cost.now.per_hour / 2
    assert each > 3
    assert cost.most.per_hour == pytest.approx(4 * each, rel=Decimal("0.0001"))
    assert so_far.usd == (4 * each).quantize(Decimal("0.01"))
    assert so_far.hours == 10
    assert so_far.unknown == ()
    waiting = dataclasses.replace(POOL, mode=Mode.FLEX_START)
    cost, so_far = _bill(waiting, ages={"np-mig": []})
    assert cost.now.per_hour == 0
    assert so_far.usd == 0
    assert cost.most.per_hour > 0
    odd = dataclasses.replace(POOL, name="odd", machine_type="x9-wonder-1g", gpu_type=None)
    cost, so_far = _bill(POOL, odd, ages={"np-mig": [1.0], "odd": [1.0]})
    assert any("x9-wonder-1g" in name for name in cost.now.unknown)
    assert any("x9-wonder-1g" in name for name in so_far.unknown)
    assert so_far.usd > 0
    existing = status.Existing(**cast("Any", {**PLACE, "machines": (), "ages": {}, "age": None}))
    assert status.cost_of(existing, None) == (None, None)
    assert status.cost_of(None, prices.listed()) == (None, None)


@pytest.mark.parametrize(("rest", "unknown"), [(5.0, 0), (None, 2)])
def test_a_control_plane_is_billed_since_it_came(rest: float | None, unknown: int) -> None:
    cost, so_far = _bill(
        POOL, age=rest, ages={"np-mig": [2.0]}, has_control_plane=True, makes_network=True
    )
    parts = [part for part in cost.parts if part.pool is None]
    assert len(parts) == 2
    assert len(so_far.unknown) == unknown


def test_node_pools_are_billed_as_google_has_them_now() -> None:
    texts = dict.fromkeys(("kind", "cluster_id", "tool_version", "terraform_version"), "x")
    record = Record(**cast("Any", PLACE | texts))
    about: dict[str, Any] = {"project": "p", "name": "np-gke", "location": "us-central1"}
    made: dict[str, Any] = {"name": "np-gpu", "machine_type": "a2-highgpu-1g", "gpus": 1}
    gpus = GpuPool(**made, accelerator="nvidia-tesla-a100", max_nodes=4, mode=Mode.QUEUED)
    facts = ClusterFacts(**about, version="1.35.7", pools=(gpus,), workload_account="a")
    scaling = {"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4}
    config = {"machineType": "a2-highgpu-1g", "diskSizeGb": 200, "diskType": "pd-ssd"}
    small = {"machineType": "e2-standard-4", "spot": True}
    pools: list[dict[str, Any]] = [
        {"name": "np-gpu", "config": config, "autoscaling": scaling},
        {"name": "np-system", "config": small, "initialNodeCount": 2},
    ]
    zones = ("us-central1-a", "us-central1-b")
    there = [pool | {"locations": [zone]} for pool, zone in zip(pools, zones, strict=True)]
    document = {"createTime": "2026-11-22T08:00:00Z", "nodePools": there}
    node = Node(name="n", created="2026-11-22T08:00:00Z")
    nodes = (Nodes(pool="np-system", each=(node, node)),)
    told = kubernetes_status.Status(nodes=nodes, workloads=(), requests=())
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
