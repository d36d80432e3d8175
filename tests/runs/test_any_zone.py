"""ZONE names several zones: where the cluster ends up, what that takes, and what it leaves."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.waiting import until

A, B, C = "us-central1-a", "us-central1-b", "europe-west4-a"
ZONES = f"{A},{B},{C}"
NONE_LEFT = {"machines": 0}
NO_QUOTA = {"quota": 0}
RATE = 0.004
"""Wall seconds for a second of Google's: a run has 12 hours in three minutes."""
LONG = {"CAPACITY_TIMEOUT": "12h"}
SLOW = pytest.mark.slow(sibling="::test_a_cluster_goes_from_zone_to_zone_until_one_has_it")


def _moves(said: str) -> list[tuple[str, str]]:
    return re.findall(r"^From (.+?) to (.+?): ", said, re.MULTILINE)


def _groups(rehearsal: Rehearsal) -> list[str]:
    """The zones with a group of ours."""
    return [
        line.split("/zones/")[1].split("/")[0]
        for line in rehearsal.resources()
        if "/instanceGroupManagers/" in line and "resizeRequests" not in line
    ]


def _require_nothing_left(rehearsal: Rehearsal, zones: str) -> None:
    gone = rehearsal.run("Destroy", ZONE=zones)
    assert gone.code == 0, gone.said
    not_ours = ("storage/", "compute/reservations ")
    left = [line for line in rehearsal.resources() if not line.startswith(not_ours)]
    assert not left


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix."""

    name: str
    stock: tuple[Mapping[str, object], ...]  # what zones have left
    moves: tuple[tuple[str, str], ...]  # from where to where Create goes
    code: int = 0  # how it ends
    settings: Mapping[str, str] = field(default_factory=dict)
    says: str = ""  # a part of what is said at the end
    scenario: str = ""  # what the cloud practises besides
    # where the machines are in the end; "" for where the last move goes, or the first zone
    ends: str = ""
    rooms: tuple[tuple[str, int], ...] = ()  # zone -> how many machines the reservation has there


def _none(zones: str, **more: object) -> dict[str, object]:
    return {"zones": zones, "machines": 0, **more}


SPOT = {"ENABLE_SPOT": "yes"}
FLEX = {"ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "1d"}
MULTI = {
    "NETWORK_CONFIG": "multi_nic_network",
    "VM_TYPE": "a3-megagpu-8g",
    "ZONE": f"{A},{B},europe-west4-b",
}
UNSEEN = {"SKIP_CHECKS": "quota,policies"}
US, EVERYWHERE = "us-*", "*"
WAYS: Mapping[str, Mapping[str, str]] = {
    "on-demand": {},
    "spot": SPOT,
    "flex": FLEX,
    # Networks of their own in each region.
    "multi": MULTI,
}


def _of_way(way: str, settings: Mapping[str, str]) -> Iterator[Cell]:
    """The cells of a way that does not know of reservations: each refusal, as far as it reaches."""
    last = settings.get("ZONE", ZONES).rpartition(",")[2]
    on = [(A, B), (B, last)]
    none, no_quota = {"machines": 0}, {"quota": 0}
    unseen = {**settings, **UNSEEN}

    def cell(name: str, *moves: tuple[str, str], **more: Any) -> Cell:
        return Cell(f"{name}-{way}", moves=moves, **{"stock": (), "settings": settings, **more})

    yield cell("stockout-first", *on[:1], stock=({"zones": A, **none},))
    yield cell("stockout-all-but-the-last", *on, stock=({"zones": US, **none},))
    yield cell(
        "stockout-all", *on, stock=({"zones": EVERYWHERE, **none},), code=75,
        settings={**settings, "CAPACITY_TIMEOUT": "75m"}, says="None of 3 zones",
    )  # fmt: skip
    # Met by the VMs: it holds for the region, so the zone beside is not tried. More takes a person.
    out = ({"zones": US, **no_quota},)
    yield cell("quota-met-all-but-the-last", (A, last), stock=out, settings=unseen)
    yield cell(
        "quota-met-all", (A, last), stock=({"zones": EVERYWHERE, **no_quota},), code=7,
        settings=unseen, says="The quota ",
    )  # fmt: skip
    # Seen before: such a zone is not even tried.
    yield cell("quota-seen-all-but-the-last", stock=out, ends=last)
    yield cell(
        "quota-seen-all", stock=({"zones": EVERYWHERE, **no_quota},), code=4,
        says="No other zone of ZONE can be used either: 3 were looked at",
    )  # fmt: skip
    yield cell("policy-of-places-seen-all-but-the-last", scenario="policy-locations", ends=last)
    here = {**settings, "ZONE": f"{A},{B}"}
    yield cell("policy-of-places-seen-all", scenario="policy-locations", settings=here, code=4)
    # The same in all zones: no other is tried.
    yield cell("policy-met", scenario="policy-shielded-vm", settings=unseen, code=7)
    yield cell("permission-met", scenario="no-account", code=7, says="iam.serviceAccountUser")


RESERVED = {"RESERVATION_NAME": "mine", "INSTANCE_COUNT": "2"}
# Others take it between the look and the asking.
TAKEN = RESERVED | {"SKIP_CHECKS": "reservation"}


def _reserved(name: str, *rooms: int, **more: Any) -> Cell:
    """A cell of machines that come from a reservation of so many in each zone that has one."""
    places = tuple(zip((A, B, C), rooms, strict=False))
    usual = {"stock": (), "moves": (), "settings": RESERVED, "rooms": places}
    return Cell(f"{name}-reserved", **(usual | more))


CELLS = [
    *(cell for way in WAYS.items() for cell in _of_way(*way)),
    Cell(
        "a-part-of-the-machines-is-not-enough",
        ({"zones": A, "machines": 2},),
        ((A, B),),
        settings={"INSTANCE_COUNT": "3"},
    ),
    # A reservation of one zone or more: the others are not tried.
    _reserved("full-seen-first", 1, 2, ends=B),
    _reserved("full-seen-all-but-the-last", 1, 1, 2, ends=C),
    _reserved("full-seen-all", 1, 1, 1, code=4, says="has 1 of 1 machines left"),
    _reserved("full-met-first", 1, 2, moves=((A, B),), settings=TAKEN),
    _reserved("full-met-all-but-the-last", 1, 1, 2, moves=((A, B), (B, C)), settings=TAKEN),
    _reserved(
        "full-met-all",
        1,
        1,
        1,
        moves=((A, B), (B, C)),
        code=75,
        says="None of 3 zones",
        settings={**TAKEN, "CAPACITY_TIMEOUT": "75m"},
    ),
    _reserved("gone-seen-all", 2, scenario="no-reservation", code=4, says="no reservation mine"),
    _reserved("permission-met", 2, 2, scenario="no-account", code=7, says="serviceAccountUser"),
]
QUICK = {"stockout-first-on-demand", "quota-seen-all-on-demand"}


@pytest.mark.parametrize(
    "cell", [pytest.param(it, id=it.name, marks=[] if it.name in QUICK else [SLOW]) for it in CELLS]
)
def test_a_cluster_goes_from_zone_to_zone_until_one_has_it(rehearse: Rehearse, cell: Cell) -> None:
    rehearsal = rehearse(rate=RATE, scenario=cell.scenario)
    rehearsal.stock(*cell.stock)
    for zone, room in cell.rooms:
        rehearsal.reserve("mine", "a2-highgpu-2g", room, zone)
    settings = {"ZONE": ZONES, **LONG, **cell.settings}
    made = rehearsal.run("Create", **settings)
    assert made.code == cell.code, made.said
    # A search without an end begins again.
    assert _moves(made.said)[: len(cell.moves) or None] == list(cell.moves), made.said
    assert cell.says in made.said
    if made.code == 0:
        (where,) = {
            vm["ssh"].split("--zone ")[1].split()[0] for vm in made.document["connection"]["vms"]
        }
        expected = cell.ends or (cell.moves[-1][1] if cell.moves else A)
        assert where == expected
        assert _groups(rehearsal) == [expected]
        named = [it["zone"] for it in made.document["plan"]["candidates"]]
        assert sorted(named) == sorted(settings["ZONE"].split(","))
    _require_nothing_left(rehearsal, settings["ZONE"])


def test_a_reservation_decides_on_the_zone(rehearsal: Rehearsal) -> None:
    rehearsal.reserve("mine", "a2-highgpu-2g", 2, B)
    planned = rehearsal.run("Plan", ZONE=f"{A},{B}", RESERVATION_NAME="mine")
    assert planned.code == 0, planned.said
    first, second = planned.document["plan"]["candidates"]
    assert (first["zone"], first["reservation"], first["against"]) == (B, "mine", "")
    assert second["zone"] == A
    assert "mine" in second["against"]


def test_any_zone_is_the_cheapest_of_those_that_google_has(rehearsal: Rehearsal) -> None:
    rehearsal.stock({"zones": "us-central1-*", **NO_QUOTA})
    planned = rehearsal.run("Plan", ZONE="any", GCS_MOUNT_LIST="my-data:/mnt/data")
    assert planned.code == 4  # there is no such bucket: the zones are not to blame
    planned = rehearsal.run("Plan", ZONE="any")
    assert planned.code == 0, planned.said
    candidates = planned.document["plan"]["candidates"]
    tried = [it for it in candidates if not it["against"]]
    prices = [float(it["per_hour"]) for it in tried]
    assert prices == sorted(prices)
    assert tried[0]["zone"] == planned.document["plan"]["topology"]["machines"][0]["zone"]
    against = {it["zone"] for it in candidates if it["against"]}
    assert against == {f"us-central1-{letter}" for letter in "abcf"}
    assert (
        "not tried: the quota NVIDIA_A100_GPUS in us-central1" not in planned.said
    )  # too far down
    (limited,) = rehearsal.run("Plan", ZONE="any", MAX_HOURLY_COST="0.01").document["problems"]
    assert limited["setting"] == "MAX_HOURLY_COST"


def test_where_google_has_spot_vms_comes_before_what_they_cost(rehearsal: Rehearsal) -> None:
    rehearsal.settings |= {"ZONE": "us-central1-*", **SPOT}
    rehearsal.stock(_none(A, way="SPOT"))
    planned = rehearsal.run("Plan")
    assert planned.code == 0, planned.said
    *others, last = planned.document["plan"]["candidates"]
    assert (last["zone"], last["obtainability"], last["uptime_seconds"]) == (A, 0.1, 60)
    assert {it["obtainability"] for it in others} == {0.9}
    assert "Google: 10% likely, most run 1 minute" in " ".join(planned.said.split())
    # A list is in the order of whoever wrote it.
    first, _ = rehearsal.run("Plan", ZONE=f"{A},{B}").document["plan"]["candidates"]
    assert (first["zone"], first["obtainability"]) == (A, 0.1)


@pytest.mark.slow(sibling="::test_any_zone_is_the_cheapest_of_those_that_google_has")
def test_a_cluster_that_runs_stays_where_it_is(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.stock(_none(A))
    made = rehearsal.run("Create", ZONE=f"{A},{B}", **LONG)
    assert _moves(made.said) == [(A, B)], made.said
    rehearsal.stock(_none(B))
    again = rehearsal.run("Create", ZONE=f"{A},{B}", **LONG)
    assert again.code == 0, again.said
    assert not _moves(again.said)
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    # And what it lacks later is waited for where it is: nothing that runs ends.
    more = rehearsal.run("Create", ZONE=f"{A},{B}", INSTANCE_COUNT="2", **LONG)
    assert more.code == 7, more.said
    assert not _moves(more.said)
    assert _groups(rehearsal) == [B]


@pytest.mark.slow(sibling="::test_a_cluster_goes_from_zone_to_zone_until_one_has_it")
def test_a_search_without_an_end_says_what_was_tried_and_goes_on_later(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.stock(_none("*"))
    waiting: Ended = rehearsal.run("Create", ZONE=f"{A},{B}", CAPACITY_TIMEOUT="90m")
    assert waiting.code == 75, waiting.said
    problem = waiting.problem
    assert problem["setting"] == "CAPACITY_TIMEOUT"
    assert "None of 2 zones has all machines after 1 h 30 min" in problem["what"]
    first, second = problem["why"].splitlines()
    assert first.startswith(f"{A}, ")
    assert second.startswith(f"{B}, ")
    assert "does not have enough resources available" in first
    assert "None of 2 zones has all machines now: again in" in waiting.said
    (there,) = _groups(rehearsal)
    rehearsal.stock()
    made = rehearsal.run("Create", ZONE=f"{A},{B}", **LONG)
    assert made.code == 0, made.said
    # It goes on where it had come to.
    assert _groups(rehearsal) == [there]
    assert not _moves(made.said)


@SLOW
def test_a_share_goes_with_the_search_that_made_it_and_later_only_if_somebody_agrees(
    rehearse: Rehearse,
) -> None:
    share = {"NFS_FILESHARE_LIST": "/mnt/shared:BASIC_SSD:2560", "INSTANCE_COUNT": "2"}
    settings = SPOT | LONG | share | {"ZONE": f"{A},{B}"}
    rehearsal = rehearse(rate=RATE)
    rehearsal.stock(_none(A))
    made = rehearsal.run("Create", **settings)
    assert (made.code, _groups(rehearsal)) == (0, [B]), made.said
    # As if it had been killed when all ran, before it could write that down.
    record = rehearsal.object("deployment.json") | {"searching": True}
    name = quote("np-deployment/deployment.json", safe="")
    path = "upload/storage/v1/b/aiinfra-terraform-my-project/o?uploadType=media&name="
    rehearsal.google("POST", f"{path}{name}", record)
    rehearsal.stock(_none(B))
    vm = next(it.partition(" ")[2] for it in rehearsal.resources() if "/instances/" in it)
    rehearsal.google("POST", f"compute/v1/{vm}/simulateMaintenanceEvent")
    again = rehearsal.run("Create", **settings)
    assert (again.code, again.problem["code"]) == (2, "approval-needed"), again.said
    assert "all files on its 2560 GB are lost" in again.problem["why"]
    assert rehearsal.run("Create", "--yes", **settings).code == 0
    assert _groups(rehearsal) == [A]


@SLOW
def test_queues_are_waited_in_one_after_the_other(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=RATE, scenario="never")
    settings = {"ZONE": f"{A},{B}", "CAPACITY_TIMEOUT": "12m"} | FLEX
    waiting = rehearsal.run("Create", **settings)
    assert waiting.code == 75, waiting.said
    assert (A, B) in _moves(waiting.said)
    requests = [line for line in rehearsal.resources() if "resizeRequests" in line]
    assert len(requests) == 1
    _require_nothing_left(rehearsal, settings["ZONE"])


def _mode(rehearsal: Rehearsal) -> object:
    """How Status says that machines are got."""
    (pool,) = rehearsal.run("Status").document["status"]["machines"]
    return pool["mode"]


@pytest.mark.slow(sibling="::test_a_cluster_goes_from_zone_to_zone_until_one_has_it")
def test_a_cluster_goes_from_way_to_way_and_stays_how_it_came(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.stock(_none("*", way="SPOT"))
    rehearsal.settings |= {"ZONE": f"{A},{C}", "CAPACITY": "spot,on_demand"} | LONG
    planned = rehearsal.run("Plan")
    table = [(it["zone"], it["way"]) for it in planned.document["plan"]["candidates"]]
    assert table == [(A, "spot"), (C, "spot"), (A, "on_demand"), (C, "on_demand")]
    made = rehearsal.run("Create")
    assert made.code == 0, made.said
    spot, plain = f"{A} (spot)", f"{A} (on demand)"
    assert _moves(made.said) == [(spot, f"{C} (spot)"), (f"{C} (spot)", plain)], made.said
    assert _mode(rehearsal) == "standard"
    # Now that there are some: nobody who works on the machines loses them.
    rehearsal.stock()
    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert not _moves(again.said)
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert _mode(rehearsal) == "standard"
    _require_nothing_left(rehearsal, f"{A},{C}")


@SLOW
def test_ways_of_one_zone_are_tried_with_a_group_each(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.reserve("mine", "a2-highgpu-2g", 1, A)
    rehearsal.stock(_none(A, way="SPOT"), _none(A, way="FLEX_START"))
    rehearsal.settings |= LONG | {
        "CAPACITY": "reservation,spot,flex_start,on_demand",
        "RESERVATION_NAME": "mine",
        "INSTANCE_COUNT": "2",
    }
    made = rehearsal.run("Create")
    assert made.code == 0, made.said
    steps = [f"{A} ({way})" for way in ("spot", "flex start", "on demand")]
    assert _moves(made.said) == list(itertools.pairwise(steps)), made.said
    reserved, *_ = (it for it in made.document["plan"]["candidates"] if it["way"] == "reservation")
    assert "mine" in reserved["against"]
    assert not [line for line in rehearsal.resources() if "resizeRequests" in line]
    _require_nothing_left(rehearsal, A)


GKE = {"ORCHESTRATOR_TYPE": "gke"}
D = "us-central1-c"
HERE = f"{A},{B},{D}"
MEGA = {"VM_TYPE": "a3-megagpu-8g", "INSTANCE_COUNT": "2"}
W, X = "europe-west1-b", "europe-west1-c"
A4 = MEGA | SPOT | {"VM_TYPE": "a4-highgpu-8g", "ZONE": f"{W},{X}"}
AUTOSCALED = {"GKE_MIN_NODE_COUNT": "0", "GKE_MAX_NODE_COUNT": "2"}
QUEUED = {"ENABLE_QUEUED_PROVISIONING": "yes", **AUTOSCALED}
NOWHERE = (_none("*"),)
GKE_WAYS: Mapping[str, Mapping[str, str]] = {
    "fixed": {},
    "spot": SPOT,
    "multi": MEGA,
    "autoscaled": AUTOSCALED,
    "flex": {"ENABLE_FLEX_START": "yes", **AUTOSCALED},
    "queued": QUEUED,
}


def _of_gke(way: str, settings: Mapping[str, str]) -> Iterator[Cell]:
    """The cells of a way. Pools that begin without nodes ask for none, so that none are refused."""
    asks = "GKE_MAX_NODE_COUNT" not in settings
    on = [(A, B), (B, D)] if asks else []

    def cell(name: str, *moves: tuple[str, str], **more: Any) -> Cell:
        return Cell(f"{name}-{way}", moves=moves, **{"stock": (), "settings": settings, **more})

    if asks:
        yield cell("stockout-first", *on[:1], stock=(_none(A),))
        yield cell("stockout-all-but-the-last", *on, stock=(_none(A), _none(B)))
    yield cell(
        "stockout-all", *on, stock=NOWHERE, code=75 if asks else 0,
        settings={**settings, "CAPACITY_TIMEOUT": "75m"},
    )  # fmt: skip
    # All zones are of one region, and so has each the same quota.
    out = ({"zones": "us-*", **NO_QUOTA},)
    yield cell(
        "quota-seen-all",
        stock=out,
        code=4 if asks else 0,
        says="No other zone of ZONE" if asks else "in us-central1 is too small",
    )
    met = {**settings, **UNSEEN}
    yield cell("quota-met-all", stock=out, settings=met, code=7 if asks else 0)
    yield cell("policy-of-places-seen-all", scenario="policy-locations", code=4)
    yield cell("permission-met", scenario="no-account", code=6, says="iam.serviceAccountUser")


OF_GKE = [
    *(cell for way in GKE_WAYS.items() for cell in _of_gke(*way)),
    # Its networks are of one zone: they move with it.
    Cell("stockout-first-rdma", (_none(W),), ((W, X),), settings=A4),
    Cell(
        "a-part-of-the-nodes-is-not-enough",
        ({"zones": A, "machines": 2},),
        ((A, B),),
        settings={"INSTANCE_COUNT": "3"},
    ),
]


def _pool_zone(rehearsal: Rehearsal) -> str:
    """Where the pool with GPUs is, as Status says."""
    machines = rehearsal.run("Status").document["status"]["machines"]
    (found,) = (it["zone"] for it in machines if "system" not in it["name"])
    return str(found)


@pytest.mark.parametrize("cell", [pytest.param(it, id=it.name, marks=[SLOW]) for it in OF_GKE])
def test_the_pools_of_a_gke_cluster_go_from_zone_to_zone_and_the_cluster_stays(
    rehearse: Rehearse, cell: Cell
) -> None:
    rehearsal = rehearse(rate=RATE, scenario=cell.scenario)
    rehearsal.settings |= {"ZONE": HERE, **GKE, **LONG, **cell.settings}
    rehearsal.stock(*cell.stock)

    made = rehearsal.run("Create")

    assert made.code == cell.code, made.said
    assert _moves(made.said)[: len(cell.moves) or None] == list(cell.moves), made.said
    assert cell.says in made.said
    if made.code == 0:
        assert made.said.count("(cluster, ") == 1  # it is made once
        assert _pool_zone(rehearsal) == (cell.moves[-1][1] if cell.moves else A)
        rehearsal.stock(_none("*"))
        again = rehearsal.run("Create")
        assert again.code == 0, again.said
        assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    _require_nothing_left(rehearsal, rehearsal.settings["ZONE"])


@SLOW
def test_a_search_of_a_gke_cluster_without_an_end_goes_on_where_it_had_come_to(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.settings |= {"ZONE": f"{A},{B}", "CAPACITY_TIMEOUT": "90m", **GKE}
    rehearsal.stock(_none("*"))

    waiting = rehearsal.run("Create")

    assert waiting.code == 75, waiting.said
    first, second = waiting.problem["why"].splitlines()
    assert first.startswith(f"{A}, ")
    assert second.startswith(f"{B}, ")
    there = _moves(waiting.said)[-1][1]
    assert f"everything is kept, in {there}" in waiting.said
    rehearsal.stock()
    made = rehearsal.run("Create", **LONG)
    assert made.code == 0, made.said
    assert not _moves(made.said)
    assert _pool_zone(rehearsal) == there
    _require_nothing_left(rehearsal, f"{A},{B}")


@SLOW
@pytest.mark.parametrize("moment", [("DELETE", "/nodePools/"), ("POST", "/nodePools")])
@pytest.mark.parametrize("then", ["Create", "Destroy"])
@pytest.mark.parametrize("to", ["another zone", "another way"])
def test_a_gke_cluster_that_is_killed_on_the_way_is_finished_or_undone(
    rehearse: Rehearse, moment: tuple[str, str], then: str, to: str
) -> None:
    rehearsal = rehearse(rate=0.01)
    by_way = to == "another way"
    rehearsal.settings |= {"ZONE": A if by_way else f"{A},{B}", **GKE, **LONG}
    rehearsal.settings |= {"CAPACITY": "spot,on_demand"} if by_way else {}
    rehearsal.stock(_none(A, way="SPOT") if by_way else _none(A))
    started = rehearsal.start("Create")
    until(lambda: f"\nFrom {A}" in rehearsal.said(started), lambda: rehearsal.said(started))
    asked = len(rehearsal.requests())
    method, part = moment
    until(
        lambda: any(
            it["method"] == method and part in it["path"] for it in rehearsal.requests()[asked:]
        )
    )
    rehearsal.kill(started)

    if then == "Create":
        made = rehearsal.run("Create", "--yes")
        assert made.code == 0, made.said
        assert _pool_zone(rehearsal) == (A if by_way else B)
    gone = rehearsal.run("Destroy", "--yes")
    assert gone.code == 0, gone.said
    assert not [it for it in rehearsal.resources() if not it.startswith("storage/")]


@SLOW
@pytest.mark.parametrize("zones", [(A, B), (A,)])
def test_the_pools_of_a_gke_cluster_go_from_way_to_way(
    rehearse: Rehearse, zones: tuple[str, ...]
) -> None:
    rehearsal = rehearse(rate=RATE)
    rehearsal.stock(_none("*", way="SPOT"))
    rehearsal.settings |= {"ZONE": ",".join(zones), "CAPACITY": "spot,on_demand"} | LONG | GKE

    made = rehearsal.run("Create")

    assert made.code == 0, made.said
    steps = [*(f"{zone} (spot)" for zone in zones), f"{A} (on demand)"]
    assert _moves(made.said) == list(itertools.pairwise(steps)), made.said
    assert made.said.count("(cluster, ") == 1  # it is made once
    # Now that there are some: nobody who works on the nodes loses them.
    rehearsal.stock()
    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    _require_nothing_left(rehearsal, rehearsal.settings["ZONE"])
