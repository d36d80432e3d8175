"""What a run's cluster costs: in its report, and within the limit that the settings give."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING

from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.cost import Origin
from provision.errors import Code, Problem, ProvisionError, SettingsError
from provision.settings.choices import PriceList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.documents.cost import Cost
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record


def current(context: Context, cloud: Cloud, *, bucket: bool) -> Prices | None:
    """The prices that PRICES asks for; the dated list, with a note, where Google's can't be read.

    Returns the prices; None if none are wanted.
    """
    if context.settings.prices is not PriceList.LIVE:
        return offline(context)
    try:
        return cloud.price_book.prices(context.console.progress, bucket=bucket)
    except ProvisionError as error:
        what = "Google's prices could not be read, so those of the program's list count"
        fix = error.problems[0].fix or "PRICES=list, if that is enough"
        context.note([_not_checked(error, what, fix)])
    return prices.listed().by(context.today)


def known(context: Context, cloud: Cloud) -> Prices | None:
    """The prices for a run that keeps nothing: with PRICES=live those that another run has kept.

    To read Google's list takes up to two minutes, which a run would have to wait for each time.
    Returns the prices; None if none are wanted.
    """
    if context.settings.prices is not PriceList.LIVE:
        return offline(context)
    try:
        return cloud.price_book.kept() or prices.listed().by(context.today)
    except ProvisionError:
        return prices.listed().by(context.today)


def offline(context: Context) -> Prices | None:
    """The prices as far as they are known without Google; None if none are wanted."""
    return None if context.settings.prices is PriceList.OFF else prices.listed().by(context.today)


def keep(context: Context, cloud: Cloud) -> None:
    """Keep Google's prices beside the state, if this run has read them; a failure is a note."""
    if context.settings.prices is not PriceList.LIVE:
        return
    try:
        cloud.price_book.keep()
    except ProvisionError as error:
        what = "Google's prices could not be kept beside the state"
        context.note([_not_checked(error, what, "nothing: the next run reads them again")])


def _not_checked(error: ProvisionError, what: str, fix: str) -> Problem:
    why = f"{error.problems[0].what}: {error.problems[0].why}"
    return Problem(setting="PRICES", what=what, why=why, fix=fix, code=Code.NOT_CHECKED)


def tell(
    context: Context, spec: ClusterSpec, listed: Prices | None, record: Record | None = None
) -> None:
    """Add what a cluster costs to the report, and see that it may cost that.

    `listed`: the prices; None if none are wanted.
    """
    if listed is None:
        return
    cost = estimate.of(spec, listed)
    if record is not None and record.hourly is not None:
        cost = dataclasses.replace(cost, before=Decimal(record.hourly))
    context.report.cost = cost
    limit = context.settings.max_hourly_cost
    problems = [] if limit is None else list(beyond(cost, limit, context.settings.team_defaults))
    if problems:
        raise SettingsError.of(problems)


def beyond(cost: Cost, limit: float, team: str | None) -> Iterator[Problem]:
    """What keeps a cost from being within a limit; `team`: the file that may have set it."""
    allowed = f", as far as TEAM_DEFAULTS={team} allows it" if team else ""
    setting = "MAX_HOURLY_COST"
    written, most = f"{setting}={limit:g}", cost.most.per_hour
    if most > Decimal(str(limit)):
        dearest = max(cost.parts, key=lambda part: part.most or Decimal(0))
        yield Problem(
            setting=setting,
            what=f"This cluster would cost up to ${most:,.2f} per hour, more than {written}",
            why=f"${dearest.most:,.2f} of it for {dearest.name}",
            fix="ask for fewer or other machines, or raise the limit:"
            f" {setting}={most.to_integral_value('ROUND_CEILING')}{allowed}",
            code=Code.COST_LIMIT,
        )
    remove = f"remove {setting}{allowed}"
    fix = remove if cost.prices is Origin.LIVE else f"PRICES=live asks Google's list; or {remove}"
    for part in cost.parts:
        if part.most is None:
            yield Problem(
                setting=setting,
                what=f"What {part.name} costs is unknown, and so is whether it is within {written}",
                why=part.remark or "",
                fix=fix,
                code=Code.PRICE_UNKNOWN,
            )
