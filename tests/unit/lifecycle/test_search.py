"""From zone to zone: where a search goes next, what ends it, and what it says then."""

import contextlib
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.context import Move
from provision.deployment import workspace
from provision.deployment.deployment import Applied
from provision.errors import CapacityError, CheckError, ProvisionError, StateError, StillWaiting
from provision.lifecycle import apply, exclusive, ownership, search
from provision.settings.candidates import Site
from provision.settings.model import Settings
from provision.spec import cluster
from provision.state.record import Record
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.unit.kinds.cases import problem_of
from tests.unit.preflight.test_quotas import RECORD

A, B, C = "us-central1-a", "us-central1-b", "europe-west4-a"
STOCK_OUT = CapacityError(
    "there is none now", code=Code.STOCK_OUT, why="does not have enough resources available"
)
QUOTA = CapacityError("the quota is too small", code=Code.QUOTA_EXCEEDED, why="a limit of 0")
DENIED = CapacityError("may not act as it", code=Code.PERMISSION_MISSING)
REFUSED = CheckError("the zone is down", code=Code.ZONE_DOWN)


@dataclasses.dataclass(frozen=True)
class Target:
    """A deployment, as far as a search needs one."""

    spec: cluster.VmSpec


class Hunt:
    """A search, and the zones that have nothing.

    `lacking`: zone -> why its machines do not come, one try after the other; then they do.
    """

    def __init__(
        self, lacking: dict[str, list[ProvisionError]], refused: tuple[str, ...], **settings: str
    ) -> None:
        texts = {"project_id": "my-project", "name_prefix": "np", "zone": f"{A},{B},{C}"}
        self.settings = Settings(texts | settings)
        self.spec = cluster.vms(self.settings)
        self.lacking, self.refused = lacking, refused
        self.tried: list[str] = []
        self.waits: list[int] = []
        self.told: list[str] = []
        progress = Progress(Clock(0), self.told.append)
        console = SimpleNamespace(progress=self.told.append)
        self.context = cast("Any", SimpleNamespace(progress=progress, console=console))

    def settle(self, *_: object, place: tuple[Site, tuple[Site, ...]], **_more: object) -> Target:
        site, places = place
        if site.zone in self.refused:
            raise REFUSED
        there = cluster.vms(self.settings.by(site.way)).in_zone(site.zone, places)
        return Target(there)

    def run(self) -> str:
        """Search; the zone that has it."""
        one: Any = search.Search(
            self.context, cast("Any", None), cast("Any", None), cast("Any", Target(self.spec)), None
        )
        made: Applied[Any] = one.run(self._attempt)
        return str(made.target.spec.site)

    def _attempt(self, target: Any) -> Any:
        self.tried.append(str(target.spec.site))
        self.waits.append(target.spec.capacity_timeout)
        left = self.lacking.get(str(target.spec.site), [])
        if left:
            raise left.pop(0)
        return Applied(target, {}, 0)


@pytest.fixture
def hunt(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Hunt]:
    def make(
        lacking: dict[str, list[ProvisionError]], *refused: str, over: bool = False, **more: str
    ) -> Hunt:
        found = Hunt(lacking, refused, **more)
        monkeypatch.setattr(apply, "settle", found.settle)
        monkeypatch.setattr(ownership, "require_standing", lambda *_: None)
        monkeypatch.setattr(search.Search, "_found", lambda *_: None)
        monkeypatch.setattr(deadline, "_SHORTEST", 0.0 if over else 60.0)
        return found

    return make


@pytest.mark.parametrize(
    ("lacking", "refused", "tried", "told"),
    [
        # A stock-out is of the zone, a quota of the region, and a zone that checks refuse is none.
        (STOCK_OUT, (), [A, B], f"From {A} to {B}: there is none now"),
        (QUOTA, (), [A, C], f"From {A} to {C}: the quota is too small"),
        (STOCK_OUT, (B,), [A, C], f"From {B} to {C}: the zone is down"),
    ],
)
def test_the_next_zone_that_may_have_it_is_tried(
    hunt: Callable[..., Hunt],
    lacking: ProvisionError,
    refused: tuple[str, ...],
    tried: list[str],
    told: str,
) -> None:
    one = hunt({A: [lacking]}, *refused)
    assert one.run() == tried[-1]
    assert one.tried == tried
    assert one.told[-1] == told
    assert len(one.told) == 1 + len(refused)


def test_what_is_the_same_everywhere_or_of_the_one_zone_ends_it_in_its_own_words(
    hunt: Callable[..., Hunt],
) -> None:
    for error, settings in ((DENIED, {}), (STOCK_OUT, {"zone": A})):
        one = hunt({A: [error]}, **settings)
        with pytest.raises(CapacityError) as caught:
            one.run()
        assert caught.value is error
        assert one.tried == [A]


def test_it_begins_again_where_the_group_is(hunt: Callable[..., Hunt]) -> None:
    one = hunt({A: [STOCK_OUT, STOCK_OUT], B: [STOCK_OUT], C: [STOCK_OUT, STOCK_OUT]})
    assert one.run() == B
    assert one.tried == [A, B, C, C, A, B]
    assert f"None of 3 zones has all machines now: again in 30 s, from {C} on" in one.told


def test_nobody_waits_for_what_only_a_person_mends(hunt: Callable[..., Hunt]) -> None:
    one = hunt({A: [QUOTA], C: [QUOTA]})
    with pytest.raises(CapacityError) as caught:
        one.run()
    assert one.tried == [A, C]
    assert [it.code for it in caught.value.problems] == [Code.QUOTA_EXCEEDED]


def test_after_the_timeout_it_says_what_was_tried_and_what_google_said(
    hunt: Callable[..., Hunt],
) -> None:
    one = hunt({A: [STOCK_OUT], B: [STOCK_OUT], C: [QUOTA]}, over=True)
    with pytest.raises(StillWaiting) as caught:
        one.run()
    assert one.tried == [A, B, C]
    (problem,) = caught.value.problems
    assert problem.what == "None of 3 zones has all machines after 30 min and 3 tries"
    assert [line.partition(",")[0] for line in problem.why.splitlines()] == [A, B, C]
    assert problem.why.splitlines()[2].endswith("a limit of 0")
    assert C in problem.fix


def test_a_queue_gets_its_part_of_the_time_and_other_zones_all_that_is_left(
    hunt: Callable[..., Hunt],
) -> None:
    waiting = StillWaiting("not yet")
    queued = hunt({A: [waiting]}, enable_flex_start="yes", capacity_timeout="90m")
    assert queued.run() == B
    assert queued.waits == [1800, 1800]
    plain = hunt({A: [STOCK_OUT]}, capacity_timeout="90m")
    plain.run()
    assert min(plain.waits) > 5000


WAYS = {"capacity": "spot,on_demand", "zone": f"{A},{C}"}


def test_all_zones_are_tried_in_one_way_before_the_next_way(hunt: Callable[..., Hunt]) -> None:
    one = hunt({f"{A} (spot)": [STOCK_OUT], f"{C} (spot)": [STOCK_OUT]}, **WAYS)
    assert one.run() == f"{A} (on demand)"
    assert one.told[-1] == f"From {C} (spot) to {A} (on demand): there is none now"


def test_a_quota_of_spot_says_nothing_of_the_one_on_demand(hunt: Callable[..., Hunt]) -> None:
    one = hunt({f"{A} (spot)": [QUOTA]}, **WAYS | {"zone": A})
    assert one.run() == f"{A} (on demand)"
    both = hunt({f"{A} (spot)": [QUOTA]}, **WAYS | {"capacity": "spot,flex_start", "zone": A})
    with pytest.raises(CapacityError):
        both.run()
    assert both.tried == [f"{A} (spot)"]


def test_a_search_over_ways_names_them_in_the_end(hunt: Callable[..., Hunt]) -> None:
    lacking = {f"{A} ({way})": [STOCK_OUT] for way in ("spot", "on demand")}
    one = hunt(lacking, over=True, **WAYS | {"zone": A})
    problem = problem_of(StillWaiting, one.run)
    assert problem.what == "None of 2 zones and ways has all machines after 30 min and 2 tries"
    assert f"{A} (on demand), once" in problem.why


@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("serial", [3, 4], ids=["as-it-was", "changed-by-another-run"])
def test_each_step_of_a_move_is_refused_once_another_run_has_made_one(
    serial: int,
    searching: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[Record] = []

    def begun(_: object) -> None:
        raise InterruptedError

    for owner, name in (
        (workspace, "run_folder"),
        (exclusive, "explained"),
        (exclusive, "alone"),
    ):
        monkeypatch.setattr(owner, name, lambda *_, **__: contextlib.nullcontext())
    earlier = dataclasses.replace(RECORD, serial=serial, searching=searching)
    has = {"record": lambda: earlier, "write_record": written.append, "begin_state": begun}
    move = Move(why="", left=0, serial=3, own=False)
    tool = SimpleNamespace(binary=SimpleNamespace(version="1.11"))
    context: Any = SimpleNamespace(
        settings=SimpleNamespace(name_prefix="np"),
        terraform=lambda *_: tool,
        log=lambda *_: contextlib.nullcontext(),
        move=move,
    )
    cloud: Any = SimpleNamespace(folder=SimpleNamespace(**has))
    target: Any = SimpleNamespace(spec=SimpleNamespace(places=(A, B)))
    refused = serial != move.serial
    with pytest.raises(StateError if refused else InterruptedError):
        apply.apply(context, cloud, cast("Any", None), target)
    assert [it.searching for it in written] == [True] * (not refused and not searching)
