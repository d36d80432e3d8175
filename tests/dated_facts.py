"""Facts that end: of which day each is, when somebody last looked, and how long that holds."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("contract") / "dated-facts.tsv"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One row of the table."""

    where: str  # the file or folder that has it
    of: dt.date  # the day of the newest source
    looked: dt.date  # when somebody last compared it with what is published
    holds: int  # for how many days that is good
    source: str  # what to look at

    @property
    def end(self) -> dt.date:
        """The last day on which nobody has to look."""
        return self.looked + dt.timedelta(days=self.holds)

    @property
    def row(self) -> str:
        """The row as people read it."""
        return f"{self.where}: of {self.of}, looked at {self.looked}, until {self.end}"


def facts() -> list[Fact]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Fact(
                where=row["where"],
                of=dt.date.fromisoformat(row["of"]),
                looked=dt.date.fromisoformat(row["looked at"]),
                holds=int(row["holds"]),
                source=row["look again at"],
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def overdue(them: Iterable[Fact], today: dt.date) -> Iterator[str]:
    """What somebody has to look at, a line each."""
    return (f"{it.row}. Look again at: {it.source}" for it in them if it.end < today)
