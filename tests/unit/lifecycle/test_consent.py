"""Who is asked what before a plan is applied, and what the plan is called."""

import dataclasses
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.codes import Code
from provision.context import Context, Move
from provision.documents.plan import Candidate, Change, Count, Loss, SettingChange
from provision.errors import Declined, SettingsError
from provision.google import resources
from provision.kinds.vms.kind import VM_GROUP
from provision.lifecycle import consent, plan_document
from provision.report import Report
from provision.terraform.plan import Creation, Grant, Plan
from tests.unit.conftest import vm_spec
from tests.unit.screens import stories

_TEMPLATE = Loss(address="t", noun="template", name="np-1", words="template np-1 is replaced")
_VMS = Loss(address="g", noun="group", name="np-mig", words="1 VM ends", machines=1)
_NEW = Plan(add=6, nouns=(Count(noun="group", add=1, change=0, destroy=0),))


class _Desk:
    """A console with somebody before it, or nobody."""

    def __init__(self, answer: bool | None) -> None:  # noqa: FBT001 - what is typed
        self.is_terminal = answer is not None
        self.asked: list[str] = []
        self.said: list[str] = []
        self.progress = self.said.append
        self._answer = answer

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self._answer)

    go_on = ask


def _context(
    desk: _Desk, change: Change, *, agreed: bool = False, grown: str | None = None
) -> Context:
    plan, cost = stories.first("env")[:2]
    if grown is not None and cost is not None:
        cost = dataclasses.replace(cost, before=cost.most.per_hour - Decimal(grown))
    report = Report(plan=dataclasses.replace(plan, change=change), cost=cost)
    settings = SimpleNamespace(ask_above=10.0)
    made = SimpleNamespace(console=desk, report=report, agreed=agreed, settings=settings)
    return cast("Context", made)


@pytest.mark.parametrize(
    ("change", "found", "question"),
    [
        (Change.NEW, _NEW, ["Go on?"]),
        (Change.GOES_ON, _NEW, []),
        (Change.CHANGE, Plan(change=1), []),
        (Change.NOTHING, Plan(), []),
        (Change.CHANGE, Plan(destroy=1, losses=(_VMS,)), ["Apply these changes?"]),
        (Change.NEW, Plan(destroy=1, losses=(_VMS,)), ["Apply these changes?"]),
    ],
)
def test_a_person_is_asked_once_before_a_first_create_and_before_losses(
    change: Change, found: Plan, question: list[str]
) -> None:
    yes = _Desk(answer=True)
    consent.require_create(_context(yes, change), found)
    assert yes.asked == question

    no = _Desk(answer=False)
    if question:
        with pytest.raises(Declined) as declined:
            consent.require_create(_context(no, change), found)
        assert declined.value.problems[0].code is Code.DECLINED
    else:
        consent.require_create(_context(no, change), found)

    agreed = _Desk(answer=False)
    consent.require_create(_context(agreed, change, agreed=True), found)
    assert agreed.asked == []


def test_without_a_terminal_it_goes_on_and_refuses_losses() -> None:
    nobody = _Desk(answer=None)
    consent.require_create(_context(nobody, Change.NEW), _NEW)
    consent.require_create(_context(nobody, Change.CHANGE), Plan(destroy=1, losses=(_TEMPLATE,)))
    consent.require_create(_context(nobody, Change.CHANGE, grown="500"), Plan(change=1))
    # What nobody knows is not lost without a yes.
    bucket = Loss(address="b", noun="google_storage_bucket", name="data", words="it is deleted")
    for losses, why in (((_VMS, _TEMPLATE), "1 VM ends"), ((bucket,), "it is deleted")):
        with pytest.raises(SettingsError) as refused:
            consent.require_create(_context(nobody, Change.CHANGE), Plan(destroy=1, losses=losses))
        assert refused.value.problems[0].code is Code.APPROVAL_NEEDED
        assert refused.value.problems[0].why == why


@pytest.mark.parametrize(("grown", "question"), [("9.99", []), ("10", ["Go on?"]), ("-500", [])])
def test_a_person_is_asked_where_the_cost_per_hour_grows(grown: str, question: list[str]) -> None:
    desk = _Desk(answer=True)
    consent.require_create(_context(desk, Change.CHANGE, grown=grown), Plan(change=1))
    assert desk.asked == question


@pytest.mark.parametrize(
    ("change", "settings", "found", "becomes"),
    [
        (Change.NEW, "", _NEW, Change.NEW),
        (Change.NEW, "", Plan(), Change.NOTHING),
        (Change.CHANGE, "", Plan(), Change.NOTHING),
        (Change.CHANGE, "", Plan(outputs=True), Change.NOTHING),
        (Change.CHANGE, "", Plan(imported=1), Change.GOES_ON),
        (Change.CHANGE, "LABELS", Plan(), Change.NOTHING),
        (Change.CHANGE, "", Plan(add=2), Change.GOES_ON),
        (Change.CHANGE, "LABELS", Plan(add=2), Change.CHANGE),
        (Change.CHANGE, "", Plan(add=1, destroy=1), Change.CHANGE),
    ],
)
def test_a_plan_is_called_what_it_is(
    change: Change, settings: str, found: Plan, becomes: Change
) -> None:
    changed = tuple(SettingChange(setting=it, words="+ a=b") for it in settings.split())
    assert _completed(found, change=change, settings=changed).change is becomes


def test_roles_are_those_of_the_plan_and_vms_that_stay_are_told_of_a_new_template() -> None:
    template = Creation(address="t", type=resources.TEMPLATE.type, values={})
    own = "my-cluster-nodes@my-project.iam"
    grants = (
        Grant(account=own, role="roles/a", bucket=None),
        Grant(account=own, role="roles/b", bucket="b"),
        Grant(account="my-cluster-nodes-2@my-project.iam", role="roles/c", bucket=None),
    )
    plan = _completed(Plan(add=1, creations=(template,), staying=2, grants=grants))
    (identity,) = plan.contents.identities
    assert (identity.roles, identity.buckets) == (("roles/a",), ("b",))
    assert plan.kept is not None
    assert (plan.kept.machines, plan.kept.command) == (2, "Create --replace-vms")

    assert _completed(Plan(add=1, creations=(template,))).kept is None
    assert _completed(Plan(change=1, staying=2)).kept is None
    # Those that a setting asks for come in nobody's place.
    more = (SettingChange(setting="INSTANCE_COUNT", words="2 -> 4"),)
    assert _completed(Plan(change=1, coming=2)).again == 2
    assert _completed(Plan(change=1, coming=2), settings=more).again == 0
    # Only those that Google has given are said to be kept.
    found = Plan(add=1, creations=(template,), staying=4)
    assert _completed(found, there=1).kept.machines == 1
    assert _completed(found, there=0).kept is None


MOVE = Move(why="z-a has no x available now", left=0, serial=3, own=False)
QUEUED = ("1234 of ana", "1240 of bo")
ELSEWHERE = ["Let quickstart go on elsewhere?"]
TWO = (Candidate(zone="z-a", per_hour=Decimal(8)), Candidate(zone="z-b", per_hour=Decimal(30)))


@pytest.mark.parametrize(
    ("move", "tried", "newer", "terminal", "nobody"),
    [
        (MOVE, TWO[:1], None, ["Go on?"], ""),
        # Twenty dollars an hour more are money alone, and MAX_HOURLY_COST is for that.
        (MOVE, TWO, None, ["Go on?"], ""),
        (replace(MOVE, left=1), TWO, None, ELSEWHERE, "would end machines"),
        (replace(MOVE, left=2, own=True), TWO, None, ELSEWHERE, ""),
        (MOVE, TWO, "99.0", ELSEWHERE, "would change what a newer version made"),
        (replace(MOVE, left=2, own=True, lost=QUEUED), TWO, None, ELSEWHERE, "would lose jobs"),
    ],
    ids=["none-runs", "dear", "one-runs", "of-this-run", "of-a-newer-version", "others-wait"],
)
def test_a_move_after_a_loss_is_asked_for_as_what_a_create_ends(
    move: Move,
    tried: tuple[Candidate, ...],
    newer: str | None,
    terminal: list[str],
    nobody: str,
) -> None:
    def made(answer: bool | None, *, agreed: bool = False) -> tuple[_Desk, Context]:  # noqa: FBT001 - what is typed
        desk = _Desk(answer)
        context = _context(desk, Change.NOTHING, agreed=agreed, grown="0")
        vars(context.settings)["name_prefix"] = "quickstart"
        assert context.report.plan is not None
        context.report.plan = replace(context.report.plan, candidates=tried, newer_tool=newer)
        return desk, context

    desk, context = made(answer=True)
    consent.require_move(context, move)
    assert desk.asked == terminal
    with pytest.raises(Declined):
        consent.require_move(made(answer=False)[1], move)
    consent.require_move(made(answer=False, agreed=True)[1], move)
    desk, context = made(answer=None)
    if nobody:
        with pytest.raises(SettingsError, match=nobody) as refused:
            consent.require_move(context, move)
        assert refused.value.problems[0].code is Code.APPROVAL_NEEDED
    else:
        consent.require_move(context, move)
    assert "z-a for $8.00/h" in desk.said[-1]
    told = "\n".join(desk.said)
    assert ("still run" in told) == bool(move.left)
    assert ("1234 of ana, 1240 of bo go with the queue there" in told) == bool(move.lost)


class _Google:
    """A group that was asked for more VMs than there are."""

    def __init__(self, there: int) -> None:
        vm = {"machineType": "types/a2-highgpu-1g", "status": "RUNNING"}
        self._vms = [{"name": f"np-vm-{number}", **vm} for number in range(there)]

    def find(self, *_: object) -> object:
        return {}

    def managed_instances(self, *_: object) -> object:
        return [{"instance": f"instances/{it['name']}"} for it in self._vms]

    def named_instances(self, *_: object) -> object:
        return self._vms

    def whole_instances(self, *_: object) -> object:
        return []


def _completed(found: Plan, there: int = 9, **fields: Any) -> Any:
    cloud: Any = SimpleNamespace(api=_Google(there))
    plan = dataclasses.replace(stories.first("env")[0], **{"change": Change.CHANGE, **fields})
    return plan_document.complete(plan, cloud, VM_GROUP, vm_spec(), found)[0]


def test_what_nobody_knows_is_counted_first_and_by_its_type() -> None:
    types = [resources.NETWORK.type, resources.GROUP.type, "google_project", "null_resource"]
    there = [(it, "x") for it in (*types, "google_project")]
    cloud = SimpleNamespace(folder=SimpleNamespace(resources=lambda: there))
    found = consent._counts(cast("Any", cloud))
    assert list(found.items()) == [
        ("google_project", 2),
        ("null_resource", 1),
        ("group", 1),
        ("network", 1),
    ]
