"""Offers: which machines have a GPU, how they are got, and for how much. It makes nothing."""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines, prices
from provision.codes import Code
from provision.context import connect
from provision.cost import offers
from provision.errors import Problem, ProvisionError, SettingsError
from provision.google.api import GoogleApiError
from provision.screens import amounts
from provision.settings import masking, parsing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Context
    from provision.documents.cost import Offer
    from provision.documents.plan import Quota

_ALIKE: Final = 0.5


def show(context: Context) -> None:
    """Print the machines with the GPU that the command line names, or a line for each GPU."""
    text, given = context.job, context.report.settings or {}
    names = _named(context) if text else tuple(machines.GPUS)
    settings = context.settings
    seconds = settings.max_run_duration if given.get("MAX_RUN_DURATION") is not None else None
    at = settings.zone if given.get("ZONE") == settings.places.text else ""
    listed = prices.listed().by(context.today)
    found = offers.of(names, listed, context.today, seconds=seconds, at=at)
    if not text:
        context.report.offers = found
        lines = amounts.each_gpu(offers.cheapest(found), context.console.width)
        context.console.show(lines, as_result=True)
        return
    found = _with_quotas(context, found, given.get("PROJECT_ID"))
    context.report.offers = found
    lines = amounts.offers(found, context.console.width, seconds=seconds)
    context.console.show(lines, as_result=True)


def _named(context: Context) -> tuple[str, ...]:
    text = context.job
    names = offers.gpus_of(text)
    over = [it for it in map(machines.GPUS.__getitem__, names) if it.is_over(context.today)]
    if names and len(over) < len(names):
        return names
    short = {gpu.model.lower(): gpu.model for gpu in machines.GPUS.values()}
    close = difflib.get_close_matches(text.lower()[:64], [*short, *machines.GPUS], 3, _ALIKE)
    meant = " or ".join(dict.fromkeys(short.get(it, it) for it in close))
    if over:
        raise SettingsError(
            f"Google makes no machine with {over[0].name} any more",
            why=f"its support has ended on {over[0].supported_until}",
            fix="Offers alone has a line for each GPU",
            code=Code.INVALID_COMMAND_LINE,
        )
    raise SettingsError(
        f"{parsing.shorten(masking.mask(text))} is neither a GPU nor a machine type with GPUs",
        why=f"it knows {', '.join(dict.fromkeys(short.values()))}",
        fix=f"did you mean {meant}?" if meant else "Offers alone has a line for each GPU",
        code=Code.INVALID_COMMAND_LINE,
    )


def _with_quotas(context: Context, found: tuple[Offer, ...], project: object) -> tuple[Offer, ...]:
    """The same with the project's quotas, if there are credentials; nobody is asked to log in."""
    why, fix = "", "gcloud auth application-default login"
    if project is None:
        why, fix = "PROJECT_ID is not set", f"PROJECT_ID in the env.list, and {fix}"
    if context.offline:
        why, fix = "--offline", "leave --offline out"
    quotas: dict[tuple[str, str, bool], Quota | None] = {}
    if not why:
        try:
            quotas = _asked(context, found)
        except ProvisionError as error:
            why = error.problems[0].what
    if why:
        note = Problem(
            code=Code.NOT_CHECKED,
            what=f"The quota was not asked for: {why}",
            why="a project may have none of a GPU, or too little; Google raises it on request",
            fix=fix,
        )
        context.note([note])
    return tuple(
        dataclasses.replace(it, quota=quotas.get((it.gpu, it.region or "", _is_preemptible(it))))
        for it in found
    )


def _is_preemptible(offer: Offer) -> bool:
    return offer.way in {machines.Consumption.SPOT, machines.Consumption.FLEX_START}


def _asked(context: Context, found: Sequence[Offer]) -> dict[tuple[str, str, bool], Quota | None]:
    from provision.preflight import quotas  # noqa: PLC0415 - of who has credentials alone
    from provision.preflight.check import Answers  # noqa: PLC0415 - as just said

    cloud = connect(context, offers_login=False)
    answers, project = Answers(cloud.api), context.settings.project_id
    told: dict[tuple[str, str, bool], Quota | None] = {}
    for it in found:
        key = (it.gpu, it.region or "", _is_preemptible(it))
        if it.region is None or key in told:
            continue
        place = quotas.Region(answers, project, it.region)
        try:
            gpu = machines.GPUS[it.gpu]
            told[key] = quotas.of_gpus(place, gpu, max(1, int(it.gpus)), preemptible=key[2])
        except GoogleApiError as error:
            raise ProvisionError(str(error)) from error
    return told
