"""Calendar mode: nothing is bought unasked or twice, and what is bought is waited for and used."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dotenv import dotenv_values

from rehearsal import session
from rehearsal.cloud.store import Database
from tests.runs import rights
from tests.runs.test_on_a_terminal import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.forked import Started
    from tests.runs.conftest import Rehearsal

A, B, C = "us-central1-a", "us-central1-b", "us-east4-b"
EXAMPLE = Path(__file__).parents[2] / "examples/calendar.env.list"
SETTINGS = {name: it or "" for name, it in dotenv_values(EXAMPLE).items()}
SETTINGS |= {"ZONE": f"{A},{B}", "NAME_PREFIX": "np"}
NAME = "np-calendar"
BUY = ("--yes", "--buy")
RATE = 0.004
PRICE = "$30,314 in all"  # 2 x 168 h x $90.22


@pytest.fixture
def rehearsal(rehearse: Callable[..., Rehearsal]) -> Rehearsal:
    made = rehearse(rate=RATE)
    made.settings |= SETTINGS
    return made


def _bought(rehearsal: Rehearsal) -> list[str]:
    """The zones in which something is bought."""
    return [
        line.split("/zones/")[1].split("/")[0]
        for line in rehearsal.resources()
        if "/futureReservations/" in line
    ]


def _change(rehearsal: Rehearsal, **window: str) -> None:
    """Let the time of what is bought begin or end; without a time, let it never have arrived."""
    database, kind = Database(rehearsal.folder / session.DATABASE), "compute/futureReservations"
    with contextlib.closing(database), database.transaction() as store:
        for name, found in list(store.list(kind)):
            if window:
                store.put(kind, name, {**found, "timeWindow": found["timeWindow"] | window})
            else:
                store.delete(kind, name)


def _begin(rehearsal: Rehearsal) -> None:
    _change(rehearsal, startTime="2026-01-01T00:00:00Z")


def test_a_plan_says_when_where_and_for_how_much_and_buys_nothing(rehearsal: Rehearsal) -> None:
    planned = rehearsal.run("Plan")

    assert planned.code == 0, planned.said
    assert "would buy 2 x a4-highgpu-8g in us-central1-b from " in planned.said
    assert PRICE in planned.said
    assert _bought(rehearsal) == []


@pytest.mark.slow(
    sibling="tests/runs/test_calendar.py"
    "::test_what_google_does_not_sell_is_said_and_can_be_asked_for_again"
)
def test_what_is_bought_is_waited_for_used_and_outlives_a_destroy(rehearsal: Rehearsal) -> None:
    refused = rehearsal.run("Create", "--yes")
    assert refused.code == 2, refused.said
    assert "Create --yes --buy" in refused.problem["fix"]
    assert _bought(rehearsal) == []

    waiting = rehearsal.run("Create", *BUY)
    assert waiting.code == 75, waiting.said
    assert PRICE in waiting.said
    # There is no cluster yet, and what was bought is paid for all the same.
    nothing = rehearsal.run("Destroy")
    assert nothing.code == 0, nothing.said
    assert f"{NAME} goes on costing" in nothing.said
    again = rehearsal.run("Create")
    assert again.code == 75, again.said
    assert _bought(rehearsal) == [B]
    _begin(rehearsal)

    made = rehearsal.run("Create")
    assert made.code == 0, made.said
    assert {
        it["ssh"].split("--zone ")[1][: len(B)] for it in made.document["connection"]["vms"]
    } == {B}
    (pool,) = rehearsal.run("Status").document["status"]["machines"]
    assert pool["mode"] == "calendar"
    same = rehearsal.run("Create")
    assert same.document["changes"] == {"add": 0, "change": 0, "destroy": 0}

    gone = rehearsal.run("Destroy", "--yes")
    assert gone.code == 0, gone.said
    assert f"{NAME} goes on costing" in gone.said
    assert _bought(rehearsal) == [B]
    back = rehearsal.run("Create", "--yes")
    assert back.code == 0, back.said
    assert _bought(rehearsal) == [B]
    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)


@pytest.mark.slow(
    sibling="tests/runs/test_calendar.py"
    "::test_what_google_does_not_sell_is_said_and_can_be_asked_for_again"
)
def test_the_nodes_of_a_gke_cluster_are_bought_in_the_same_way(rehearsal: Rehearsal) -> None:
    del rehearsal.settings["NETWORK_CONFIG"]
    rehearsal.settings["ORCHESTRATOR_TYPE"] = "gke"
    waiting = rehearsal.run("Create", *BUY)
    assert waiting.code == 75, waiting.said
    assert PRICE in waiting.said
    _begin(rehearsal)

    made = rehearsal.run("Create")

    assert made.code == 0, made.said
    status = rehearsal.run("Status").document["status"]
    (pool,) = (it for it in status["machines"] if "system" not in it["name"])
    assert (pool["zone"], pool["mode"], pool["ready"]) == (B, "calendar", 2)
    same = rehearsal.run("Create")
    assert same.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    gone = rehearsal.run("Destroy", "--yes")
    assert gone.code == 0, gone.said
    assert f"{NAME} goes on costing" in gone.said
    assert _bought(rehearsal) == [B]
    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)


def test_a_person_on_a_terminal_says_yes_to_price_and_dates_or_nothing_is_bought(
    rehearsal: Rehearsal,
) -> None:
    code, said = at_terminal(rehearsal, "Create", b"no\n")
    assert code == 2, said
    assert PRICE in said
    assert "it can't be given back?" in " ".join(said.split())
    assert "Nothing was bought, as you said" in said
    assert rehearsal.objects() == set()

    code, said = at_terminal(rehearsal, "Create", b"yes\n", "--yes")
    assert code == 75, said
    assert _bought(rehearsal) == [B]


def test_without_a_price_no_option_buys(rehearsal: Rehearsal) -> None:
    refused = rehearsal.run("Create", *BUY, VM_TYPE="a3-ultragpu-8g")

    assert refused.code == 2, refused.said
    assert "only a person on a terminal" in refused.problem["why"]
    assert _bought(rehearsal) == []


@pytest.mark.parametrize("arrived", [True, False])
def test_a_create_that_is_killed_while_it_buys_is_followed_by_one_that_buys_no_second_time(
    rehearsal: Rehearsal, *, arrived: bool
) -> None:
    rehearsal.settings["ZONE"] = f"{B},{C}"
    rehearsal.kill(_asked(rehearsal))
    if not arrived:
        _change(rehearsal)
    # Now Google would advise the other zone; but what was asked for may arrive at any time.
    rehearsal.stock({"zones": B, "machines": 0, "way": "CALENDAR"})

    again = rehearsal.run("Create", *BUY)

    assert again.code == 75, again.said
    assert _bought(rehearsal) == [B]


def _asked(rehearsal: Rehearsal) -> Started:
    started = rehearsal.start("Create", *BUY)
    rehearsal.when_asked("POST", "/futureReservations")
    return started


def test_what_google_does_not_sell_is_said_and_can_be_asked_for_again(
    rehearse: Callable[..., Rehearsal],
) -> None:
    rehearsal = rehearse(rate=RATE, scenario="calendar-declined")
    rehearsal.settings |= SETTINGS
    refused = rehearsal.run("Create", *BUY)
    assert refused.code == 7, refused.said
    assert "DECLINED" in refused.problem["what"]

    _change(rehearsal)
    rehearsal.stock({"zones": "*", "machines": 1, "way": "CALENDAR"})
    none = rehearsal.run("Create", *BUY)
    assert none.code == 7, none.said
    assert f"{B}: NO_CAPACITY" in none.problem["why"]


def test_what_has_ended_or_is_anothers_is_not_used(rehearsal: Rehearsal) -> None:
    rehearsal.run("Create", *BUY)
    _change(rehearsal, startTime="2026-01-01T00:00:00Z", endTime="2026-01-08T00:00:00Z")
    over = rehearsal.run("Create", *BUY)
    assert over.code == 7, over.said
    assert "has ended" in over.problem["what"]

    other = rehearsal.run(
        "Create", *BUY, TERRAFORM_GCS_PATH="gs://aiinfra-terraform-my-project/other"
    )
    assert other.code == 5, other.said
    assert "is not this deployment's" in other.problem["what"]
    assert _bought(rehearsal) == [B]
