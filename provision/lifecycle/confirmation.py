"""Whether a Destroy is meant: what contradicts it, what protects it, what data goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision import words
from provision.codes import Code
from provision.errors import Declined, Problem, SettingsError
from provision.lifecycle import consent, ending
from provision.lifecycle.consent import Stake, Way
from provision.screens import ending as screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.ending import Ending
    from provision.state.record import Record

_PROTECT = "PROTECT"


def require(
    context: Context, cloud: Cloud, record: Record, kind: Kind[Any], *, asked: str | None
) -> None:
    """Show what ends, and make sure that it is to be deleted; `--yes` is a yes to all of it.

    `asked`: the kind of cluster that the settings name; None where they name none.
    """
    found = ending.describe(context, cloud, record, kind)
    context.console.show(screen.lines(found, context.report.cost, context.console.width))
    if context.agreed:
        return
    doubts_found = [*doubts(context, record, asked), *_jobs(found)]
    at_stake = {
        Stake.MACHINES: found.machines,
        Stake.DATA: found.data,
        Stake.JOBS: found.jobs,
        Stake.DOUBT: doubts_found,
    }
    stakes = [stake for stake, there in at_stake.items() if there]
    # --destroy-after is the word for it, and whoever gave it may be gone by now.
    asks = context.console.is_terminal and not context.destroy_after
    match consent.way(stakes, terminal=asks):
        case Way.PASSES:
            return
        case Way.REFUSES:
            raise SettingsError.of(doubts_found)
        case Way.ASKS | Way.GOES_ON:
            for doubt in doubts_found:
                context.console.progress(f"{doubt.what}: {doubt.why}.")
            with consent.unanswered("nothing was deleted"):
                agrees = context.console.ask(f"Delete {record.name_prefix} in {record.zone}?")
            if not agrees:
                raise Declined("Nothing was deleted, as you said")


def doubts(context: Context, record: Record | None, asked: str | None) -> list[Problem]:
    """What speaks against a Destroy, as far as the settings and the record tell."""
    contradictions = _contradictions(context, record, asked) if record else ()
    return [*contradictions, *_protection(context, record)]


def _jobs(found: Ending) -> Iterator[Problem]:
    """The jobs that would end, which others may have begun."""
    if found.jobs:
        yield Problem(
            code=Code.APPROVAL_NEEDED,
            what=f"Jobs would end: {words.listed(found.jobs)}",
            why="Destroy takes the machines that they run on, and their logs",
            fix="wait until they are over, or Cancel them; or run Destroy --yes",
        )


def _contradictions(context: Context, record: Record, asked: str | None) -> Iterator[Problem]:
    """Where the settings say something else than the record."""
    settings = context.settings
    given = settings.model_fields_set
    if "zone" in given and not settings.places.names(record.zone):
        yield _contradiction("ZONE", settings.places.text, record.zone)
    if asked not in {None, record.kind}:
        deployed = f"a cluster of the kind {record.kind}"
        yield _contradiction("ORCHESTRATOR_TYPE", f"for one of the kind {asked}", deployed)


def _contradiction(setting: str, given: str, deployed: str) -> Problem:
    return Problem(
        code=Code.APPROVAL_NEEDED,
        setting=setting,
        what=f"{setting} is {given}, but what is deployed is {deployed}",
        why="this env.list may be of another cluster",
        fix="check NAME_PREFIX and the env.list; if this deployment is meant, run Destroy --yes",
    )


def _protection(context: Context, record: Record | None) -> Iterator[Problem]:
    """What protects it: either side does, and a record that does not say that nothing does."""
    name = context.settings.name_prefix
    what, fix = f"{name} is protected", "run Create with PROTECT=no first"
    if context.settings.protect:
        why = "these settings have PROTECT=yes"
    elif record is None:
        return
    elif _PROTECT not in record.settings:
        what = f"nobody knows whether {name} is protected"
        why = "deployment.json, which says that, was lost or damaged"
        fix = "run Create first, which writes it again"
    elif record.settings[_PROTECT]:
        why = "the last Create had PROTECT=yes"
    else:
        return
    yield Problem(
        code=Code.APPROVAL_NEEDED,
        setting=_PROTECT,
        what=what,
        why=why,
        fix=f"run Destroy --yes; or {fix}",
    )
