"""The document of a plan: what is asked for, what Terraform would do, what that means."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision import words
from provision.documents.plan import Change, Plan
from provision.google.resources import TEMPLATE
from provision.lifecycle import changed_settings
from provision.spec import topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.context import Cloud, Context
    from provision.deployment.deployment import SpecT
    from provision.deployment.kind import Kind
    from provision.documents.plan import Candidate, Checks, Identity, SettingChange
    from provision.state.record import Record
    from provision.terraform import plan as terraform


def begun(  # noqa: PLR0913, PLR0917 - each is a fact of its own
    context: Context,
    kind: Kind[SpecT],
    spec: SpecT,
    record: Record | None,
    checks: Checks,
    candidates: tuple[Candidate, ...] = (),
) -> Plan:
    """The plan as far as it is known before Terraform is asked."""
    changed: tuple[SettingChange, ...] = ()
    if record is not None:
        given = {name.upper() for name in context.settings.model_fields_set}
        now = context.report.settings or {}
        changed = changed_settings.of(record.settings, now, given)
    return Plan(
        change=Change.NEW if record is None else Change.CHANGE,
        topology=topology.of(spec),
        contents=kind.contents(spec),
        settings=changed,
        checks=checks,
        candidates=candidates,
    )


def complete(
    plan: Plan, cloud: Cloud, kind: Kind[SpecT], spec: SpecT, found: terraform.Plan
) -> Plan:
    """The plan with what Terraform would do."""
    kept = None
    if found.staying and any(it.type == TEMPLATE.type for it in found.creations):
        kept = kind.kept(cloud, spec, found.staying, [it.setting for it in plan.settings])
    if kept and found.held:
        stay = "stays" if len(found.held) == 1 else "stay"
        theirs = f"{words.listed(found.held)} {stay} until then"
        kept = dataclasses.replace(kept, words=f"{kept.words}; {theirs}")
    identities = tuple(_with_roles(plan.contents.identities, found.grants))
    return dataclasses.replace(
        plan,
        change=_change(plan, found),
        contents=dataclasses.replace(plan.contents, identities=identities),
        counts=found.nouns,
        imported=found.imported,
        losses=found.losses,
        kept=kept,
    )


def _change(plan: Plan, found: terraform.Plan) -> Change:
    # Outputs alone are no change that anybody would see.
    if not (found.counts or found.imported):
        return Change.NOTHING
    goes_on = plan.change is not Change.NEW and not plan.settings
    if goes_on and not (found.change or found.destroy):
        return Change.GOES_ON
    return plan.change


def _with_roles(
    identities: Iterable[Identity], grants: Iterable[terraform.Grant]
) -> Iterator[Identity]:
    for one in identities:
        name = one.account
        own = [it for it in grants if it.account == name or it.account.startswith(f"{name}@")]
        yield dataclasses.replace(
            one,
            roles=tuple(it.role for it in own if it.bucket is None),
            buckets=tuple(dict.fromkeys(it.bucket for it in own if it.bucket is not None)),
        )
