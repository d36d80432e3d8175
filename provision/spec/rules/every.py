"""All rules between settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import PriceList
from provision.spec.rules import (
    capacity,
    gke,
    machines,
    networks,
    orchestrator,
    places,
    pools,
    software,
    storage,
)
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.settings.choices import Way
    from provision.settings.model import Settings

_SEVERAL: Final = 2
_PRICES: Final = Rules()


def judge(case: Case) -> list[Finding]:
    """The findings of all rules."""
    return [finding for rule in RULES for finding in rule.judge(case)]


def judge_ways(case: Case) -> tuple[Case, list[Finding]]:
    """The case of the way of CAPACITY that is tried first, and the findings.

    What keeps one way from being tried is a note, as long as there is another one.
    """
    ways = case.settings.capacity or ()
    if len(ways) < _SEVERAL:
        case = case.by(ways[0]) if ways else case
        return case, judge(case)
    judged = {way: judge(case.by(way)) for way in ways}
    against = {way: [it for it in found if not it.note] for way, found in judged.items()}
    usable = [way for way in ways if not against[way]]
    if not usable:
        every = list(dict.fromkeys(it for found in against.values() for it in found))
        common = [it for it in every if all(it in found for found in against.values())]
        return case.by(ways[0]), common or every
    first = case.by(usable[0])
    skipped = [
        Finding(
            code=Code.WITHOUT_EFFECT,
            field="capacity",
            what=f"goes without {way}: {_sentence(case.by(way), it)}",
            why=it.why,
            fix=it.fix,
            note=True,
        )
        for way, found in against.items()
        for it in found
    ]
    return first, judged[usable[0]] + skipped


def against(settings: Settings, way: Way) -> str:
    """What keeps a way of CAPACITY from being tried; "" for nothing."""
    case = Case(settings).by(way)
    return "; ".join(_sentence(case, it) for it in judge(case) if not it.note)


def _sentence(case: Case, finding: Finding) -> str:
    return f"{case.name(finding.field)} {finding.what}"


@_PRICES.on("prices", "max_hourly_cost")
def _limit_without_prices(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.max_hourly_cost is not None and settings.prices is PriceList.OFF:
        yield Finding(
            field="max_hourly_cost",
            what=f"can't be kept with {case.name('prices')}=off",
            why="without prices nobody knows what the cluster costs",
            fix="PRICES=list, or remove MAX_HOURLY_COST",
        )


RULES: Final = (
    *places.RULES,
    *_PRICES,
    *software.RULES,
    *machines.RULES,
    *networks.RULES,
    *capacity.RULES,
    *storage.RULES,
    *orchestrator.RULES,
    *pools.RULES,
    *gke.RULES,
)
"""All rules between settings, in the order of the settings."""
