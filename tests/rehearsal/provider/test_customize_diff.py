"""What the provider does to a plan beside its schema is in the stand-in, or there is a reason.

No description of the provider's has it: `customize_diff.tsv` is read from its source once for each
version, and a rule that is forgotten makes a rehearsal say what is not so on Google.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rehearsal.provider import mirror

_HERE: Final = Path(__file__).parent
_PROVIDER: Final = _HERE.parents[2] / "rehearsal" / "provider"
_TABLE: Final = _HERE / "customize_diff.tsv"


def _rows() -> Iterator[list[str]]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter="\t")


def test_the_rules_were_read_of_this_version() -> None:
    assert ["# version", mirror.VERSION] in _rows()


def test_each_type_is_looked_at() -> None:
    types = {row[0] for row in _rows() if row[0].startswith("google_")}
    assert types == {it.stem for it in (_PROVIDER / "schema" / "resources").glob("*.json")}


def test_each_rule_is_where_the_table_says_or_has_a_reason() -> None:
    for kind, rule, _does, where in (row for row in _rows() if not row[0].startswith("#")):
        file, _, symbol = where.partition(" ")
        if file == "-":
            assert symbol, f"{kind} {rule} has no reason"
        else:
            text = (_PROVIDER / "resources" / file).read_text(encoding="utf-8")
            assert symbol in text, f"{kind} {rule}"
