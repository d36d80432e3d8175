"""The page on who is asked says what the code does."""

import re
from pathlib import Path

from provision.lifecycle import consent
from provision.lifecycle.consent import Stake, Way

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "consent.md"


def test_the_page_is_the_table_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert text == consent.page(), "make docs renews it"
    rows = re.findall(r"^\| (?!what|---)(.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    assert [row[0] for row in rows] == list(Stake)


def test_each_stake_has_a_row_and_nobody_is_asked_where_nobody_sits() -> None:
    assert set(consent.TABLE) == set(Stake)
    for stake in Stake:
        asked = consent.way([stake], terminal=True)
        alone = consent.way([stake], terminal=False)
        assert asked in {Way.GOES_ON, Way.ASKS}
        assert alone in {Way.PASSES, Way.REFUSES}
    assert consent.way([], terminal=True) is Way.PASSES
    assert consent.way([Stake.CLUSTER, Stake.LOSS], terminal=True) is Way.ASKS
