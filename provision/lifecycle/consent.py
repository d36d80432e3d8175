"""Who is asked before money is spent, or machines, jobs or data go: one table for all actions.

A slip on a terminal is caught by a question; a pipeline has nobody to ask, so what it may not do
without a question is refused there. `--yes` is a yes to all of it.
"""

from __future__ import annotations

import contextlib
import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.errors import Interrupted, Unanswered
from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.documents.plan import Loss


class Way(enum.IntEnum):
    """What happens, the strictest last."""

    PASSES = 0
    GOES_ON = 1
    ASKS = 2
    REFUSES = 3


class Stake(enum.StrEnum):
    """What an action would begin, end or lose; the value is how the table calls it."""

    CLUSTER = "Create: a cluster that is not there yet"
    COST = "Create: `ASK_ABOVE` dollars per hour, or more, on top of what the cluster costs"
    LOSS = (
        "Create: a machine ends, data is lost, or a cluster, a network or a part of one is deleted"
        " or replaced"
    )
    JOB = "Run: nodes that come for the job, for `ASK_ABOVE` dollars per hour, or more"
    MACHINES = "Destroy: machines that exist"
    DATA = "Destroy: data that nothing brings back, such as a Filestore share"
    JOBS = "Destroy: a job that runs, or waits for its turn"
    DOUBT = "Destroy: what is protected, or is not what these settings describe"


TABLE: Final[Mapping[Stake, tuple[Way, Way]]] = {
    Stake.CLUSTER: (Way.GOES_ON, Way.PASSES),
    Stake.COST: (Way.GOES_ON, Way.PASSES),
    Stake.LOSS: (Way.ASKS, Way.REFUSES),
    Stake.JOB: (Way.GOES_ON, Way.PASSES),
    Stake.MACHINES: (Way.ASKS, Way.PASSES),
    Stake.DATA: (Way.ASKS, Way.PASSES),
    Stake.JOBS: (Way.ASKS, Way.REFUSES),
    Stake.DOUBT: (Way.ASKS, Way.REFUSES),
}
"""What happens on a terminal, and where there is none."""

_WORDS: Final = {
    Way.PASSES: "goes on",
    Way.GOES_ON: "asks; Enter is a yes",
    Way.ASKS: 'asks for a typed "yes"',
    Way.REFUSES: "ends with exit code 2, unless `--yes` is given",
}
_PASSES: Final = frozenset(
    row.noun
    for row in (
        resources.NODE_POOL,
        resources.GROUP,
        resources.RESIZE_REQUEST,
        resources.TEMPLATE,
        resources.RESOURCE_POLICY,
        resources.DASHBOARD,
        resources.PROJECT_ROLE,
        resources.ACCOUNT_ROLE,
        resources.BUCKET_ROLE,
        resources.SERVICE_ACCOUNT,
        resources.OBJECT,
    )
)
"""What is recreated, or not needed any more, as long as no machine ends with it."""
_PAGE: Final = """# What is asked, and when

This page is made from `provision/lifecycle/consent.py`; `make docs` renews it.

| what is at stake | on a terminal | without one |
| --- | --- | --- |
{rows}

Everything else goes on without a question: what ends no machine and loses no data needs none.
`--yes` agrees to all of it beforehand. Where several are at stake, the strictest counts.
`MAX_HOURLY_COST` decides about money where nobody is asked. `--replace-vms` is itself the word for
the machines that it replaces, and `--destroy-after` for those of the cluster: it asks as where
there is no terminal. Where ZONE names several zones, a Create asks once: until all machines have
run together, those that came are no loss to it. What belongs to others, and locks, have rules of
their own: [after a kill](../how-to/after-a-kill.md).
"""


def way(stakes: Iterable[Stake], *, terminal: bool) -> Way:
    """What happens where all of these are at stake: what the strictest asks for."""
    return max((TABLE[one][0 if terminal else 1] for one in stakes), default=Way.PASSES)


@contextlib.contextmanager
def unanswered(words: str) -> Iterator[None]:
    """Ask: an interrupt at the question says what was not done.

    `words`: that, such as "nothing was deleted".
    """
    try:
        yield
    except Interrupted as error:
        raise Unanswered(error.signum, f"Interrupted at the question; {words}") from error


def matters(loss: Loss) -> bool:
    """Whether a loss takes more than what nobody notices; what nobody knows does."""
    return bool(loss.machines) or loss.data or loss.noun not in _PASSES


def page() -> str:
    """The table, as a page of the reference."""
    rows = (
        f"| {stake} | {_WORDS[terminal]} | {_WORDS[without]} |"
        for stake, (terminal, without) in TABLE.items()
    )
    return _PAGE.format(rows="\n".join(rows))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
