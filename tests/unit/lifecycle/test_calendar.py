"""What Google advises about calendar mode: whatever it answers, it is advice or none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from provision.lifecycle import calendar

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(ANY, ANY)
def test_whatever_google_answers_is_advice_or_none(one: object, other: object) -> None:
    for recommended in (one, {"recommendationsPerSpec": {"vms": other}}):
        found = calendar.advised({"recommendations": [recommended]})
        assert found is None or all(found)


def test_the_first_recommendation_with_a_place_and_a_time_counts() -> None:
    there = {"location": "zones/us-east4-b", "startTime": "2026-12-24", "endTime": "2026-12-31"}
    specs = [{"vms": {"otherLocations": {}}}, {"vms": there}]
    answer = {"recommendations": [{"recommendationsPerSpec": it} for it in specs]}
    assert calendar.advised(answer) == ("us-east4-b", "2026-12-24", "2026-12-31")
