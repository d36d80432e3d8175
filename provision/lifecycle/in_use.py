"""What machines that run hold, and a change of the settings would take from them.

Terraform sees the group's template alone. What machines of an older one hold would go as if they
had gone: their account with all its roles, their placement policy, the template that they are
repaired from. So it is taken out of Terraform's state and stays as it is. It carries the
deployment's marker, by which the sweep removes it once no machine holds it any more.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Problem
from provision.files import private
from provision.google import resources
from provision.lifecycle import exclusive, marked, phases
from provision.lifecycle.phases import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment, Held, SpecT
    from provision.deployment.kind import Kind
    from provision.deployment.workspace import Workspace
    from provision.google.owner import Owner
    from provision.state.record import Record
    from provision.terraform.plan import Existing, Plan

_MADE_OF: Final = (resources.TEMPLATE, resources.RESOURCE_POLICY)
_ROWS: Final = (*_MADE_OF, resources.SERVICE_ACCOUNT)
_PATHS: Final = frozenset(row.type for row in _MADE_OF)
_ROLES: Final = frozenset({resources.PROJECT_ROLE.type, resources.BUCKET_ROLE.type})
_BUCKET: Final = "b/"
_UNSAID: Final = frozenset(
    row.noun for row in (resources.TEMPLATE, resources.PROJECT_ROLE, resources.BUCKET_ROLE)
)
"""What nobody misses: the account that has the roles is named."""


def taken(plan: Plan, held: Held, owner: Owner, prefix: str) -> list[Existing]:
    """What a plan would take from machines that hold it, as far as the sweep can find it again."""
    if any(it.type == resources.GROUP.type for it in plan.removals):
        return []  # the machines go too
    own = f"{names.SERVICE_ACCOUNT.of(prefix)}@"
    leaving = {
        it.values["email"]
        for it in plan.removals
        if it.type == resources.SERVICE_ACCOUNT.type and it.values["email"] in held.accounts
    }
    return [it for it in plan.removals if _is_taken(it, held, leaving, own, owner)]


def _is_taken(one: Existing, held: Held, leaving: set[str], own: str, owner: Owner) -> bool:
    if one.type in _PATHS:
        return one.values["self_link"].partition("/v1/")[2] in held.paths
    if one.type == resources.SERVICE_ACCOUNT.type:
        return one.values["email"] in leaving
    if one.type not in _ROLES:
        return False
    account = one.values["member"].partition(":")[2]
    if account in leaving:
        return True
    # Of an account that stays, machines hold what they have mounted, not each role.
    is_ours = account.startswith(own) or _marker(one) == owner.text
    return one.type == resources.BUCKET_ROLE.type and account in held.accounts and is_ours


def _marker(one: Existing) -> str:
    condition: dict[str, str] = next(iter(one.values.get("condition") or []), {})
    return condition.get("description", "")


def take_out_of_state(
    cloud: Cloud, kind: Kind[SpecT], target: Deployment[SpecT], desk: Workspace, plan: Plan
) -> list[Existing]:
    """Take what a plan would take from machines out of the state; returns what that is."""
    if not any(it.type in _PATHS | _ROLES for it in plan.removals):
        return []
    found = taken(plan, kind.held(cloud, target.spec), target.owner, target.spec.name_prefix)
    record = cloud.folder.record() if found and desk.live else None
    if record is not None:
        # Before it is out of the state: nobody else would know the bucket of a role.
        kept = {*record.held, *(name for one in found for name in _recorded(one))}
        cloud.folder.write_record(dataclasses.replace(record, held=tuple(sorted(kept))))
    if found:
        desk.forget([one.address for one in found])
    return found


def _recorded(one: Existing) -> Iterator[str]:
    match one.type:
        case resources.SERVICE_ACCOUNT.type:
            yield one.values["email"]
        case resources.BUCKET_ROLE.type:
            yield _BUCKET + one.values["bucket"].removeprefix(_BUCKET)
        case resources.PROJECT_ROLE.type:
            yield one.values["member"].partition(":")[2]
        case _:
            yield one.values["self_link"].partition("/v1/")[2]


def names_of(found: Sequence[Existing]) -> tuple[str, ...]:
    """The names that people know of what stays."""
    nouns = {row.type: row.noun for row in resources.ALL}
    return tuple(sorted(it.called for it in found if nouns.get(it.type) not in _UNSAID))


def policies(plan: Plan) -> tuple[str, ...]:
    """The names that people know of the policies that a plan would delete."""
    return tuple(it.called for it in plan.removals if it.type == resources.RESOURCE_POLICY.type)


def note_of_policy(policy: str, instead: str) -> Problem:
    """What becomes of a policy that the settings want no more, and what ends it."""
    return Problem(
        code=Code.OUT_OF_DATE,
        what=f"{policy} stays, and VMs that come are placed by it too",
        why="Google takes it from no group that has VMs",
        fix=f"to be rid of it, which ends the VMs that run: {instead}",
    )


def buckets(record: Record) -> set[str]:
    """The buckets in which machines of older settings have roles that no state knows."""
    return {it.removeprefix(_BUCKET) for it in record.held if it.startswith(_BUCKET)}


def remove_unused(context: Context, cloud: Cloud, kind: Kind[SpecT], made: Applied[SpecT]) -> None:
    """Remove what machines of older settings have held, as far as they hold it no longer.

    A failure is a note: the cluster stands, and the next Create tries again.
    """
    spec = made.target.spec
    before = cloud.folder.record()
    if before is None or not before.held:
        return
    with (
        phases.aside(context),
        phases.during(Phase.STANDING, cloud, "What no machine holds any more was not removed"),
        private.folder() as folder,
        exclusive.alone(context, cloud, spec, folder),
    ):
        record = cloud.folder.record() or before
        found = kind.held(cloud, spec, older=True)
        with context.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
            marked.sweep(
                context,
                cloud,
                record,
                last=False,
                buckets={cloud.folder.location.bucket, *buckets(record)},
                rows=_ROWS,
                held=found,
                why="no machine holds it any more",
            )
        still = found.paths | found.accounts
        kept = [it for it in record.held if it in still or (still and it.startswith(_BUCKET))]
        cloud.folder.write_record(dataclasses.replace(record, held=tuple(kept)))
