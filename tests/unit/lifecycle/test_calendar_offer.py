"""What calendar mode asks, reads and keeps; what Google or a bucket says may be anything."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.intake import load
from provision.lifecycle import calendar_offer
from provision.lifecycle.calendar_offer import Offer

OFFER = Offer(
    zone="us-central1-b",
    machine_type="a4-highgpu-8g",
    count=2,
    start="2026-12-24T00:00:00Z",
    end="2026-12-31T00:00:00Z",
    seconds=7 * 86400,
    price=Decimal("30313.92"),
)
NOW = dt.datetime(2026, 11, 26, tzinfo=dt.UTC).timestamp()
DAY = 86400.0
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_an_offer_is_read_as_it_was_written_down() -> None:
    assert Offer.read(json.loads(OFFER.document)) == OFFER
    assert OFFER.cost == "for $30,314 in all (7 days), by list price"


@given(st.dictionaries(st.sampled_from([*json.loads(OFFER.document), "x"]), ANY))
def test_a_record_that_somebody_has_spoiled_is_none(spoiled: dict[str, Any]) -> None:
    found = Offer.read({**json.loads(OFFER.document), **spoiled})
    assert found is None or found.what


@given(ANY, ANY)
def test_whatever_google_answers_is_advice_or_none(one: object, other: object) -> None:
    for recommended in (one, {"recommendationsPerSpec": {"vms": other}}):
        advised, others = calendar_offer.answered({"recommendations": [recommended]})
        assert advised is None or all(advised)
        assert all(isinstance(it, str) for it in others.values())


@pytest.mark.parametrize(
    ("start", "window"),
    [
        (None, ("2026-11-29T00:00:00Z", "2027-01-25T00:00:00Z")),
        ("2026-11-20T00:00:00Z", ("2026-11-29T00:00:00Z", "2027-01-25T00:00:00Z")),
        ("2026-12-24T08:00:00Z", ("2026-12-24T08:00:00Z", "2027-01-25T00:00:00Z")),
        ("2027-06-01T00:00:00Z", ("2027-06-01T00:00:00Z", "2027-06-01T00:00:00Z")),
    ],
)
def test_a_time_begins_no_earlier_than_asked_nor_than_google_can(
    start: str | None, window: tuple[str, str]
) -> None:
    assert calendar_offer.window(start, NOW, 3 * DAY, 60 * DAY) == window


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"CALENDAR_DURATION": "12h"}, "too short or too long"),
        ({"CALENDAR_DURATION": "91d"}, "too short or too long"),
        ({"CALENDAR_DURATION": "", "CALENDAR_START": "2026-12-24"}, "is set without"),
        ({"CALENDAR_START": "24.12.2026"}, "is no date"),
        ({"ENABLE_SPOT": "yes"}, "can't be combined with"),
        ({"ENABLE_FLEX_START": "yes"}, "can't be combined with"),
        ({"RESERVATION_NAME": "mine"}, "can't be combined with"),
        ({"CAPACITY": "spot,on_demand"}, "can't be combined with"),
        ({"MAX_RUN_DURATION": "1d"}, "can't be combined with"),
        ({"INSTANCE_COUNT": "81"}, "more than calendar mode sells"),
        ({"VM_TYPE": "a2-highgpu-8g"}, "is not available for a2-highgpu-8g"),
        ({"ORCHESTRATOR_TYPE": "gke", "GKE_NODE_POOL_COUNT": "2"}, "can't be combined with"),
    ],
)
def test_what_calendar_mode_does_not_sell_is_refused(settings: dict[str, str], what: str) -> None:
    usual = {"PROJECT_ID": "p-project", "NAME_PREFIX": "np", "ZONE": "us-central1-b"}
    usual |= {"VM_TYPE": "a4-highgpu-8g", "CALENDAR_DURATION": "7d"}
    assert load(usual).problems == ()

    problems = load(usual | settings).problems

    assert any(what in it.what for it in problems), problems
