"""Facts that end are looked at again: dated-facts.tsv says which, and until when each holds."""

import datetime as dt
import re
from pathlib import Path
from typing import Final

from tests import dated_facts

TREE: Final = Path(__file__).parents[2]
FACTS: Final = dated_facts.facts()
_REMEDY: Final = "look at these, mend what has changed, and write the day into dated-facts.tsv"
_DAY: Final = re.compile(r"20\d\d-\d\d-\d\d")
_ONLY_FORM: Final = {
    "prices.py": "dates are of prices.json",
    "zones.py": "dates are of offers.json",
}
"""Modules that have a date, and no fact."""


def test_somebody_has_looked_at_each_fact_before_its_end() -> None:
    late = list(dated_facts.overdue(FACTS, dt.datetime.now(tz=dt.UTC).date()))
    assert not late, "\n".join([_REMEDY, *late])


def test_a_fact_is_overdue_from_the_day_after_its_end_on() -> None:
    fact = FACTS[0]
    assert list(dated_facts.overdue([fact], fact.end)) == []
    (line,) = dated_facts.overdue([fact], fact.end + dt.timedelta(days=1))
    assert line.startswith(f"{fact.where}: of {fact.of}, looked at {fact.looked}, until")
    assert line.endswith(f"Look again at: {fact.source}")


def test_each_fact_is_there_and_was_looked_at_after_its_source() -> None:
    assert [it.where for it in FACTS if not (TREE / it.where).exists()] == []
    assert [it.where for it in FACTS if it.looked < it.of] == []
    assert max(it.holds for it in FACTS) <= 180


def test_each_file_of_the_catalogue_that_names_a_day_is_in_the_table() -> None:
    dated = {
        path.relative_to(TREE).as_posix()
        for path in (TREE / "provision" / "catalogue").iterdir()
        if path.is_file()
        and path.name not in _ONLY_FORM
        and _DAY.search(path.read_text(encoding="utf-8"))
    }
    assert dated - {it.where for it in FACTS} == set()
