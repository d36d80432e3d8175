"""What a run's cluster costs: in its report, and within the limit that the settings give."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.cost import Origin
from provision.errors import (
    Alternatives,
    Code,
    Problem,
    ProvisionError,
    SettingsError,
    assignments,
)
from provision.settings.choices import PriceList

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.documents.cost import Cost
    from provision.settings.model import Settings
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400


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
    problems = list(beyond(cost, spec, context.settings))
    if problems:
        raise SettingsError.of(problems)


def beyond(cost: Cost, spec: ClusterSpec, settings: Settings) -> Iterator[Problem]:
    """What keeps a cost from being within MAX_HOURLY_COST and MAX_COST."""
    team = settings.team_defaults
    allowed = f", as far as TEAM_DEFAULTS={team} allows it" if team else ""
    limits = {"MAX_HOURLY_COST": settings.max_hourly_cost, "MAX_COST": settings.max_cost}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if settings.max_hourly_cost is not None:
        yield from _beyond_hourly(cost, settings.max_hourly_cost, allowed)
    if settings.max_cost is not None and not cost.most.unknown:
        yield from _beyond_in_all(cost, spec, settings.max_cost, allowed)
    for name in list(given)[:1]:
        yield from _unknown(cost, name, f"{name}={given[name]:g}", allowed)


def _beyond_hourly(cost: Cost, limit: float, allowed: str) -> Iterator[Problem]:
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


def _beyond_in_all(cost: Cost, spec: ClusterSpec, limit: float, allowed: str) -> Iterator[Problem]:
    written, usd = f"MAX_COST={limit:g}", Decimal(str(limit))
    total, seconds = estimate.in_all(spec, cost)
    if total is not None and total <= usd:
        return
    fits = estimate.longest_within(cost, usd)
    # What a request of a job says, or a reservation, no setting shortens.
    own = [it for it in spec.pools if it not in spec.system_pools]
    is_settable = not any(it.mode.means.bound or it.mode.means.queued for it in own)
    shorter = f"MAX_RUN_DURATION={_written(fits)}, the longest that fits; or " if fits else ""
    others = f"fewer or other machines{f', or {_enough(total)}{allowed}' if total else ''}"
    hourly = f"${cost.most.per_hour:,.2f} per hour with all that can come"
    if fits is None:
        hourly += ", too much for the ten minutes that VMs may run at least"
    if total is None or seconds is None:
        what = f"Nothing ends this cluster's machines, so that {written} can't be kept"
        why = f"{hourly}, until Destroy"
    else:
        lasts = words.duration(float(seconds))
        what = f"This cluster would cost up to ${total:,.2f} in all, more than {written}"
        why = f"{hourly}, for {lasts}" + (
            ": as long as a job in the queue may run" if not is_settable else ""
        )
    yield Problem(
        setting="MAX_COST",
        what=what,
        why=why,
        fix=(shorter if is_settable else "") + others,
        alternatives=Alternatives(settings=assignments(shorter) if is_settable else {}),
        code=Code.COST_LIMIT,
    )


def _enough(total: Decimal) -> str:
    return f"MAX_COST={total.to_integral_value('ROUND_CEILING')}"


def _written(seconds: int) -> str:
    """A time as a setting has it."""
    if seconds % _DAY == 0:
        return f"{seconds // _DAY}d"
    return f"{seconds // _HOUR}h" if seconds % _HOUR == 0 else f"{seconds // _MINUTE}m"


def _unknown(cost: Cost, setting: str, written: str, allowed: str) -> Iterator[Problem]:
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


def of_the_rest(context: Context, cloud: Cloud, spec: ClusterSpec) -> Settings:
    """The settings, with what MAX_COST leaves to machines that come a second time.

    Raises:
        SettingsError: It leaves too little.
    """
    from provision.state import history  # noqa: PLC0415 - offline nothing was spent

    settings = context.settings
    if settings.max_cost is None:
        return settings
    known = history.in_all(history.of(cloud.folder), context.clock.now(), context.clock.cloud)
    written = f"{settings.max_cost:g}"
    if known is None:
        raise SettingsError(
            f"MAX_COST={written} can't be kept by machines that come again",
            code=Code.PRICE_UNKNOWN,
            setting="MAX_COST",
            why="what it has cost so far is not known: its history is lost, or has no price",
            fix="remove MAX_COST; MAX_RUN_DURATION limits what machines cost that come now",
        )
    spent, limit = known.usd, Decimal(str(settings.max_cost))
    cost = estimate.of(spec, prices.listed().by(context.today))
    total, _ = estimate.in_all(spec, cost)
    if total is not None and spent + total <= limit:
        # By what is left, ways and zones are judged that are more expensive than the first.
        return settings.but(max_cost=f"{limit - spent:f}") if spent else settings
    fits = estimate.longest_within(cost, limit - spent) if spent < limit else None
    if fits is None or spec.has_control_plane:
        raise SettingsError(
            f"MAX_COST={written} leaves too little for machines that come again",
            code=Code.COST_LIMIT,
            setting="MAX_COST",
            why=f"the cluster has cost at most ${spent:,.2f} so far",
            fix=f"MAX_COST={(spent + (total or limit)).to_integral_value('ROUND_CEILING')}",
        )
    context.console.progress(
        f"MAX_COST={written}: at most ${spent:,.2f} are spent, so Google deletes each VM that comes"
        f" now {words.duration(float(fits))} after it came"
    )
    return settings.but(max_cost=f"{limit - spent:f}", max_run_duration=_written(fits))


def ending(settings: Settings, spec: ClusterSpec, today: dt.date) -> tuple[str, Problem] | None:
    """The MAX_RUN_DURATION that keeps VMs within MAX_COST, and a note that says so.

    By the dated list: the same settings have to give the same one at the next run. None where a
    duration is set, or could not be, or where none fits; the limit itself then says more.
    """
    is_open = settings.max_cost is not None and "max_run_duration" not in settings.given
    if not is_open or spec.has_control_plane or any(it.mode.means.bound for it in spec.pools):
        return None
    cost = estimate.of(spec, prices.listed().by(today))
    seconds = estimate.longest_within(cost, Decimal(str(settings.max_cost)))
    if seconds is None:
        return None
    written, limit = _written(seconds), f"MAX_COST={settings.max_cost:g}"
    note = Problem(
        code=Code.NOTE,
        setting="MAX_COST",
        what=f"has Google delete each VM {words.duration(float(seconds))} after it came",
        why=f"${cost.most.per_hour:,.2f} per hour by the dated list: the longest that fits {limit}",
        fix=f"MAX_RUN_DURATION={written} keeps it so, whatever prices do",
        alternatives=Alternatives(settings={"MAX_RUN_DURATION": written}),
    )
    return written, note
