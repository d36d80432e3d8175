"""What is asked before money is spent, or machines, jobs or data go: one table for all actions.

A slip on a terminal is caught by a question; a pipeline has nobody to ask, so what it may not do
without a question is refused there. `--yes` is a yes to all of it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision import __version__, intake, words
from provision.catalogue import prices
from provision.codes import Code
from provision.cost import estimate
from provision.documents.deployed import Ending, Held
from provision.documents.plan import Change
from provision.errors import (
    ClusterError,
    Declined,
    Interrupted,
    Problem,
    SettingsError,
    StateError,
    Unanswered,
)
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.google.owner import MARKER
from provision.lifecycle import plan_document, pricing
from provision.screens import amounts
from provision.settings import choices
from provision.settings.candidates import Site
from provision.settings.choices import KIND, called
from provision.state import history

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.context import Cloud, Context, Move
    from provision.deployment.deployment import SpecT
    from provision.deployment.kind import Jobs, Kind
    from provision.documents.cost import Cost
    from provision.documents.plan import Candidate, Loss
    from provision.documents.plan import Plan as PlanDocument
    from provision.spec.pools import Pool
    from provision.state.record import Record
    from provision.terraform.plan import Plan
    from provision.time.clock import Clock

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
`MAX_HOURLY_COST` decides about money where nobody is asked. `--replace-vms` agrees to the end of
the machines that it replaces, and `--destroy-after` to that of the cluster's; with it a run asks as
it does without a terminal. Where ZONE names several zones, a Create asks once: until all machines
have run together, those that came are no loss to it; a GKE cluster is, and so is a share that an
earlier run has made. What belongs to others, and locks, have rules of their own:
[after a kill](../how-to/after-a-kill.md).
"""
_FORBIDDEN: Final = 403
_POOL_LABEL: Final = "goog-k8s-node-pool-name"
"""The label that GKE puts on the VM of a node."""
_PROTECT = "PROTECT"


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
    OPENS = (
        "Create: a cluster that is there comes within reach of others: public addresses, a network"
        " of others, address ranges, logins by keys"
    )
    NEWER = "Create: a cluster that a newer version of this program made is changed"
    MOVE = "Run: with `--create`, a cluster whose machines were lost goes on in another zone or way"
    JOB = "Run: nodes that come for the job, for `ASK_ABOVE` dollars per hour, or more"
    EVERY_JOB = "Cancel: with `--all`, jobs that run, or wait for their turn"
    OVERWRITTEN = "Fetch: files here that differ from those of the job"
    MACHINES = "Destroy: machines that exist"
    DATA = "Destroy: data that nothing brings back, such as a Filestore share"
    JOBS = (
        "Destroy: a job that runs, or waits for its turn; Run: with `--create`, one of others in"
        " the queue of a cluster that goes on elsewhere"
    )
    DOUBT = "Destroy: what is protected, or is not what these settings describe"


TABLE: Final[Mapping[Stake, tuple[Way, Way]]] = {
    Stake.CLUSTER: (Way.GOES_ON, Way.PASSES),
    Stake.COST: (Way.GOES_ON, Way.PASSES),
    Stake.LOSS: (Way.ASKS, Way.REFUSES),
    Stake.OPENS: (Way.ASKS, Way.REFUSES),
    Stake.NEWER: (Way.ASKS, Way.REFUSES),
    Stake.MOVE: (Way.GOES_ON, Way.PASSES),
    Stake.JOB: (Way.GOES_ON, Way.PASSES),
    Stake.EVERY_JOB: (Way.ASKS, Way.REFUSES),
    Stake.OVERWRITTEN: (Way.ASKS, Way.REFUSES),
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


def require(  # noqa: PLR0913, PLR0917 - the words of one question
    context: Context, stake: Stake, does: str, question: str, undone: str, other: str = ""
) -> None:
    """Ask, or refuse where nobody can be asked, as the table says.

    `does`: what the action would do, such as "end 2 jobs"; "" where that was said. `undone`: what
    a no leaves undone, such as "nothing was copied". `other`: what helps beside `--yes`.

    Raises:
        Declined: Somebody does not agree.
        SettingsError: Nobody can be asked.
    """
    asked, action = way([stake], terminal=context.console.is_terminal), context.report.action
    if context.agreed or asked is Way.PASSES:
        return
    if asked is Way.REFUSES:
        raise SettingsError(
            f"This {action} would {does}",
            code=Code.APPROVAL_NEEDED,
            fix=f"if that is what you want, run it again with --yes, which agrees to it{other}",
        )
    if does:
        context.console.progress(f"{action} would {does}")
    ask = context.console.go_on if asked is Way.GOES_ON else context.console.ask
    with unanswered(undone):
        agrees = ask(question)
    if not agrees:
        raise Declined(f"{undone[0].upper()}{undone[1:]}, as you said")


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


def describe_plan(
    context: Context, cloud: Cloud, kind: Kind[SpecT], spec: SpecT, found: Plan
) -> None:
    """Put what Terraform would do into the report's plan."""
    if context.report.plan is not None:
        context.report.plan, running = plan_document.complete(
            context.report.plan, cloud, kind, spec, found
        )
        listed = pricing.known(context, cloud) if running else None
        if listed is not None and context.report.cost is not None:
            context.report.cost = estimate.with_running(context.report.cost, running, listed)


def show_plan(
    context: Context, *, older: int = 0, is_again: bool = False, as_result: bool = False
) -> None:
    """Show the report's plan.

    `older`: VMs that are older than the settings, although nothing changes. `is_again`: whether
    this run has shown a plan before: then only what is counted is said.
    """
    from provision.screens import layout  # noqa: PLC0415 - not every action needs it
    from provision.screens import plan as screen  # noqa: PLC0415 - as above

    plan = context.report.plan
    if plan is None:
        return
    if is_again:
        context.console.progress(layout.unglued(screen.summary(plan, older)))
        return
    lines = screen.lines(
        plan, context.report.cost, context.console.width, older=older, hint=not context.full
    )
    context.console.show(lines, as_result=as_result)


def asks_first(context: Context) -> bool:
    """Whether a person is asked before anything of a new cluster is made."""
    is_new = context.report.plan is not None and context.report.plan.change is Change.NEW
    return is_new and context.console.is_terminal and not context.agreed


def require_create(context: Context, found: Plan, *, is_again: bool = False) -> None:
    """Ask, as the table of `consent` says, before a plan is applied."""
    if context.agreed or found.is_empty:
        return
    losses = "\n".join(loss.words for loss in found.losses if matters(loss))
    opened, newer = _opened(context.report.plan), _newer(context.report.plan)
    why = "\n".join(filter(None, [losses, opened, newer]))
    undone, no = "nothing was changed", "Nothing was changed, as you said"
    if asks_first(context):
        undone, no = "nothing was made", "Not created, as you said: nothing was made"
    if is_again:
        undone = "what was made before is kept"
    stakes = [*_stakes(context, losses, opened), *([Stake.NEWER] if newer else [])]
    asked = way(stakes, terminal=context.console.is_terminal)
    # After something was made, an interrupt and a no are told as they are anywhere else.
    with contextlib.nullcontext() if is_again else unanswered(undone):
        match asked:
            case Way.PASSES:
                agrees = True
            case Way.GOES_ON:
                agrees = context.console.go_on("Go on?")
            case Way.ASKS:
                agrees = context.console.ask("Apply these changes?")
            case Way.REFUSES:
                does = ["end or lose what exists"] if losses else []
                does += ["open the cluster to others"] if opened else []
                does += ["change what a newer version has made"] if newer else []
                raise SettingsError(
                    f"This Create would {' and '.join(does)}; {undone}",
                    why=why,
                    fix="if that is what you want, run Create again with --yes, which agrees to it",
                    code=Code.APPROVAL_NEEDED,
                )
    if agrees:
        return
    if is_again:
        raise SettingsError(f"The rest was not done, as you said; {undone}", code=Code.DECLINED)
    raise Declined(no, why=why)


def require_move(context: Context, move: Move) -> None:
    """Say what a move after a loss takes, and ask, as the table says, before it begins."""
    name, plan, cost = context.settings.name_prefix, context.report.plan, context.report.cost
    tried = [it for it in plan.candidates if not it.against] if plan else []
    prices_known = [it.per_hour for it in tried if it.per_hour is not None]
    grown = max(prices_known, default=Decimal(0)) - ((cost and cost.before) or Decimal(0))
    is_dear = bool(prices_known) and grown >= Decimal(str(context.settings.ask_above))
    if newer := _newer(plan):
        context.console.progress(newer)
    context.console.progress(f"{name} is to go on where Google has all machines: {move.why}")
    ends = f"{move.left} of them still {'runs' if move.left == 1 else 'run'}, and"
    ends += " ends" if move.left == 1 else " end"
    gone = f"{ends}, with the folders of jobs there; " if move.left else ""
    goes = "goes" if len(move.lost) == 1 else "go"
    lost = f"{words.listed(move.lost)} {goes} with the queue there, and would be lost"
    if move.lost:
        context.console.progress(lost)
    context.console.progress(f"{gone}jobs go on with their folders as sent, and their mounts")
    if tried:
        context.console.progress(f"It tries {words.listed([_priced(it) for it in tried])}")
    is_loss = move.left and (context.console.is_terminal or not move.own)
    stakes = [Stake.MOVE, *[Stake.LOSS] * bool(is_loss), *[Stake.COST] * is_dear]
    stakes += [*[Stake.NEWER] * bool(newer), *[Stake.JOBS] * bool(move.lost)]
    asked = way([] if context.agreed else stakes, terminal=context.console.is_terminal)
    with unanswered("the cluster is as it was"):
        match asked:
            case Way.PASSES:
                return
            case Way.GOES_ON:
                agrees = context.console.go_on("Go on?")
            case Way.ASKS:
                agrees = context.console.ask(f"Let {name} go on elsewhere?")
            case Way.REFUSES:
                does = "end machines" if is_loss else "change what a newer version made"
                does = "lose jobs of others" if move.lost else does
                raise SettingsError(
                    f"This move would {does}; {name} stays where it is",
                    code=Code.APPROVAL_NEEDED,
                    why="\n".join(
                        filter(None, [ends * bool(is_loss), lost * bool(move.lost), newer])
                    ),
                    fix="--yes agrees to it beforehand",
                )
    if not agrees:
        raise Declined(f"{name} stays where it is, as you said")


def _priced(candidate: Candidate) -> str:
    site = Site(candidate.zone, choices.Way(candidate.way) if candidate.way else None)
    return f"{site}" + (f" for {amounts.usd(candidate.per_hour)}/h" if candidate.per_hour else "")


def _opened(plan: PlanDocument | None) -> str:
    """What of a cluster that is there comes within reach of others, a line each."""
    if plan is None or plan.change is Change.NEW:
        return ""
    return "\n".join(it.words for it in plan.opens if it.outside)


def _newer(plan: PlanDocument | None) -> str:
    if plan is None or plan.newer_tool is None:
        return ""
    return (
        f"version {plan.newer_tool} of this program made it, and this is {__version__}: what that"
        " one makes otherwise would be changed back; the newer image changes nothing"
    )


def _stakes(context: Context, losses: str, opened: str) -> Iterator[Stake]:
    if losses:
        yield Stake.LOSS
    if opened:
        yield Stake.OPENS
    plan, cost = context.report.plan, context.report.cost
    if plan is not None and plan.change is Change.NEW:
        yield Stake.CLUSTER
    if cost is not None and cost.before is not None:
        grown = cost.most.per_hour - cost.before
        if grown >= Decimal(str(context.settings.ask_above)):
            yield Stake.COST


def describe_ending(context: Context, cloud: Cloud, record: Record, kind: Kind[Any]) -> Ending:
    """What ends, as far as Google tells it; also put into the report."""
    vms = _machines(cloud, record)
    machines = ("not known: these credentials may not list VMs",)
    running = sum(vm.get("status") == "RUNNING" for vm in vms or ())
    found = Ending(
        name=record.name_prefix,
        words=called(record.settings.get(KIND), kind.called),
        zone=record.zone,
        machines=machines if vms is None else tuple(_words(vms, kind.member, context.clock)),
        running=running,
        hourly=record.hourly,
        counts=_counts(cloud),
        data=tuple(Held(words=it) for it in (*_shares(cloud), *kind.data(context, cloud, record))),
        jobs=tuple(_unfinished(context, cloud, record, kind, runs=vms is None or running > 0)),
        in_all=history.in_all(history.of(cloud.folder), context.clock.now(), context.clock.cloud),
    )
    context.report.ending = found
    context.report.cost = _cost(context, record, kind, vms or ())
    return found


def _unfinished(
    context: Context, cloud: Cloud, record: Record, kind: Kind[Any], *, runs: bool
) -> Sequence[str]:
    """The jobs that would end; what others have begun is past where no machine runs."""
    try:
        jobs = kind.jobs(context, cloud, record)
        return [*jobs.unfinished(), *(of_others(jobs) if runs else ())]
    except (SettingsError, StateError, ClusterError):
        return ()  # this kind has none, or nothing answers that would know them


def of_others(jobs: Jobs) -> Iterator[str]:
    """Those that are not over, and whose."""
    return (f"{it.name} of {it.by}" if it.by else it.name for it in jobs.others())


def _machines(cloud: Cloud, record: Record) -> list[dict[str, Any]] | None:
    """The VMs with the deployment's marker; None where these credentials may not list them."""
    path = f"projects/{record.project_id}/aggregated/instances"
    query = {"filter": f"labels.{MARKER}={record.cluster_id}"}
    try:
        scopes = list(cloud.api.pages("GET", path, "items", query, service=Service.COMPUTE))
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None
    return [vm for scope in scopes for vm in scope.get("instances", [])]


def _words(vms: Sequence[Mapping[str, Any]], member: str, clock: Clock) -> Iterator[str]:
    """What there is of each kind, as "2 VMs run: a2-highgpu-2g in us-east1-b, for up to 2 h"."""
    kinds: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for vm in vms:
        kinds[
            resources.last(vm["machineType"]), resources.last(vm["zone"]), str(vm.get("status", ""))
        ].append(vm)
    for (machine_type, zone, status), them in sorted(kinds.items()):
        count = len(them)
        members = member if count == 1 else f"{member}s"
        run = "runs" if count == 1 else "run"
        is_so = run if status == "RUNNING" else f"{'is' if count == 1 else 'are'} {status}"
        started = [vm.get("lastStartTimestamp") or vm.get("creationTimestamp") for vm in them]
        ages = [clock.since(dt.datetime.fromisoformat(it).timestamp()) for it in started if it]
        most = "" if count == 1 else "up to "
        age = f", for {most}{words.duration(max(ages))}" if ages and status == "RUNNING" else ""
        yield f"{count:,} {members} {is_so}: {machine_type} in {zone}{age}"


def _counts(cloud: Cloud) -> dict[str, int]:
    """The resources in the state, by what people call them, what matters most first."""
    found = Counter(resources.noun(type_) for type_, _ in cloud.folder.resources())
    return dict(sorted(found.items(), key=lambda one: resources.place(one[0])))


def _shares(cloud: Cloud) -> Iterator[str]:
    """The shares that go with all their files; buckets are never deleted."""
    for share in cloud.folder.of_type(resources.FILESTORE.type).values():
        files = (share.get("file_shares") or [{}])[0]
        yield f"Filestore {share.get('name')}, {files.get('capacity_gb')} GB, with all its files"


def _cost(
    context: Context, record: Record, kind: Kind[Any], vms: Sequence[Mapping[str, Any]]
) -> Cost | None:
    """What it costs now; None where these settings are not those that it was made with."""
    given = {name.upper() for name in context.settings.model_fields_set}
    for way in context.settings.capacity or (None,):
        settings = context.settings.by(way)
        now = intake.effective(settings)
        if record.settings and not plan_document.changed_settings(record.settings, now, given):
            break
    else:
        return None
    spec = kind.spec(settings)
    running = {pool.name: sum(_is_of(vm, pool) for vm in vms) for pool in spec.pools}
    return estimate.of(spec, prices.listed().by(context.today), running)


def _is_of(vm: Mapping[str, Any], pool: Pool) -> bool:
    label = (vm.get("labels") or {}).get(_POOL_LABEL, pool.name)
    return bool(label == pool.name and resources.last(vm["machineType"]) == pool.machine_type)


def require_destroy(
    context: Context, cloud: Cloud, record: Record, kind: Kind[Any], *, asked: str | None
) -> None:
    """Show what ends, and make sure that it is to be deleted; `--yes` is a yes to all of it.

    `asked`: the kind of cluster that the settings name; None where they name none.
    """
    found = describe_ending(context, cloud, record, kind)
    from provision.screens import plan as screen  # noqa: PLC0415 - not every action needs it

    context.console.show(screen.of_destroy(found, context.report.cost, context.console.width))
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
    match way(stakes, terminal=asks):
        case Way.PASSES:
            return
        case Way.REFUSES:
            raise SettingsError.of(doubts_found)
        case Way.ASKS | Way.GOES_ON:
            for doubt in doubts_found:
                context.console.progress(f"{doubt.what}: {doubt.why}.")
            with unanswered("nothing was deleted"):
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
        yield _contradiction(KIND, f"for one of the kind {asked}", deployed)


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
