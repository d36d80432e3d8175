"""Removing a deployment: the resources in the state, and those that only exist in the cloud."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.deployment.deployment import NOTHING_HELD
from provision.documents.plan import Changes
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, ProvisionError, TerraformError
from provision.files import private
from provision.google import resources
from provision.lifecycle import exclusive, in_use, marked, ownership, phases
from provision.lifecycle.phases import Phase
from provision.screens import amounts
from provision.state import liveness
from provision.terraform.failures import AGAIN
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Held, Left
    from provision.deployment.kind import Kind
    from provision.lifecycle.marked import Namesake
    from provision.state.record import Record
    from provision.terraform import Terraform

_NAMED: Final = 12  # how many of the resources that are left are named; the rest is counted


@contextlib.contextmanager
def naming_the_rest(cloud: Cloud, record: Record) -> Iterator[None]:
    """Say of a removal that stopped half-way what is left, by name, and what of it is billed."""
    try:
        yield
    except (TerraformError, ClusterError) as error:
        try:
            rest = cloud.folder.resources()
        except ProvisionError:
            rest = []  # what is left is not known: the first failure is what counts
        if not rest:
            raise
        first = error.problems[0]
        raise ClusterError(
            f"Destroy stopped half-way: {counted(len(rest), 'resource')} of the state are left",
            code=Code.NOT_REMOVED if first.code is Code.TERRAFORM_FAILED else first.code,
            why="\n".join([*_left(rest, record), first.what, first.why]),
            fix=first.fix.replace(AGAIN, "then run Destroy again: it removes the rest"),
        ) from error


def _left(rest: Sequence[tuple[str, str]], record: Record) -> list[str]:
    billed = [it for it in rest if it[0] in resources.BILLED]
    price = f", for at most {amounts.usd(Decimal(record.hourly))}/h" if record.hourly else ""
    cost = f"billed until it is removed{price}: {_list(billed)}" if billed else ""
    return [f"left: {_list(rest)}", cost or "nothing of it is billed"]


def _list(rest: Sequence[tuple[str, str]]) -> str:
    named = dict.fromkeys(f"{resources.noun(type_)} {name}" for type_, name in rest)
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return ", ".join([*list(named)[:_NAMED], *more])


def remove(
    context: Context,
    cloud: Cloud,
    record: Record,
    tool: Terraform,
    kind: Kind[Any],
) -> list[str]:
    """Remove the resources in the state and the marked ones that are not in it.

    Either can block the removal of the other, so this repeats; each round removes something or
    fails. `kind`: the kind of cluster, which cancels what would block the removal, and removes what
    the cluster itself has left. Returns what the state had that is not the deployment's, and stays:
    what it is, and whose.

    Raises:
        TerraformError, ClusterError: Something can't be removed.
    """
    kind.release(context, cloud, record)
    removed = 0
    # As long as machines run, nothing is taken from them; but Terraform deletes an account of the
    # state with the roles that it knows, and others would stay, of an account that is no more.
    holding = kind.held(cloud, record)
    lasting = holding.accounts.difference(cloud.folder.known())
    holding = dataclasses.replace(holding, accounts=lasting)
    left: dict[str, str] = {}
    while True:
        removed += _sweep(context, cloud, record, holding)
        found = tool.plan(destroy=True)
        if others := ownership.strangers(found, record, cloud.folder.location):
            left |= others
            tool.forget([*others])
            continue
        context.report.changes = found.counts + Changes(destroy=removed)
        try:
            tool.apply()
        except TerraformError:
            before = removed
            with phases.aside(context):
                removed += _sweep(context, cloud, record, holding)
                # What the cluster has left may use its network.
                removed += kind.sweep(context, cloud, record, last=False)
            if removed == before:
                raise
        else:
            break
    # A resource that a killed run had requested can appear after the first sweep.
    removed += _sweep(context, cloud, record)
    context.report.changes = found.counts + Changes(destroy=removed)
    removed += kind.sweep(context, cloud, record, last=True)
    context.report.changes = found.counts + Changes(destroy=removed)
    return list(left.values())


def without_state(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]]) -> int:
    """Remove what lives under this deployment's names although there is no state."""
    has_bucket, folder = cloud.has_bucket(), cloud.folder
    # A run that was killed before it made anything, or when it had removed all, leaves its lock,
    # its note, or a state without resources.
    if not has_bucket or not (
        folder.lock() is not None or folder.has_empty_state() or liveness.has_notes(folder)
    ):
        found = _look(context, cloud, kinds)
        if not has_bucket or not found.ours:
            return _remove_found(context, cloud, kinds, found)
    with private.folder() as root, exclusive.alone(context, cloud, context.settings, root):
        ownership.require_same(context, cloud, None)
        removed = _remove_found(context, cloud, kinds, _look(context, cloud, kinds))
        cloud.folder.clear()
    return removed


@dataclass(frozen=True)
class _Found:
    """What lives in the cloud where no state tells of it."""

    ours: bool  # whether any of it is this deployment's
    others: Sequence[Namesake]  # what has its names and is another's
    networks: Collection[str]  # the paths of the networks that carry its marker
    left: Sequence[Left]  # what clusters that are gone made themselves


def _look(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]]) -> _Found:
    location, place = cloud.folder.location, context.settings
    found = marked.namesakes(cloud.api, place, location)
    owner = ownership.ours(place, location)
    networks = marked.networks_of(found, owner)
    with phases.during(Phase.REMOVING, cloud, "What a cluster has left could not be looked for"):
        left = [kind.left(cloud, place, networks) for kind in kinds]
    has_left = any(one.paths for one in left)
    if (found or has_left) and not context.agreed:
        raise marked.not_in_state(found, place, location, left)
    others = [one for one in found if one.owner.id != owner.id]
    return _Found(len(others) < len(found) or has_left, others, networks, left)


def _remove_found(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]], found: _Found) -> int:
    location, place = cloud.folder.location, context.settings
    removed, left = 0, found.left
    if found.ours:
        what = "What lives without a state could not be removed"
        with phases.during(Phase.REMOVING, cloud, what):
            # Roles on buckets go while the account is there that has them.
            mounted = {mount.bucket for mount in place.gcs_mount_list or ()}
            own = {location.bucket} if cloud.has_bucket() else set()
            # A cluster goes before what it has left, and that before its network.
            with context.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
                removed = marked.sweep(context, cloud, place, last=False, buckets=own | mounted)
            for kind in kinds:
                removed += kind.sweep_left(context, cloud, place, found.networks)
            with context.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
                removed += marked.sweep(context, cloud, place, last=True)
            left = [kind.left(cloud, place, ()) for kind in kinds]
    if found.others:
        raise marked.not_in_state(found.others, place, location)
    context.note([problem for one in left for problem in one.kept])
    return removed


def _sweep(context: Context, cloud: Cloud, record: Record, holding: Held | None = None) -> int:
    """Remove what interrupted runs left behind; the caller holds the lock.

    `holding`: what machines hold that still run; None when this is the last sweep.
    """
    what = "Could not check for resources that earlier runs left behind"
    with phases.during(Phase.REMOVING, cloud, what):
        buckets = _buckets(cloud, record)
        with context.progress.stage(StageName.SWEEP, OnInterrupt.LEAVES_REST):
            return marked.sweep(
                context,
                cloud,
                record,
                last=holding is None,
                buckets=buckets,
                held=holding or NOTHING_HELD,
            )


def _buckets(cloud: Cloud, record: Record) -> set[str]:
    """The buckets on which the VMs' service account has been granted roles."""
    mounted = record.settings.get("GCS_MOUNT_LIST") or []
    # A record that was lost does not know the settings; the state has the roles.
    granted = cloud.folder.of_type(resources.BUCKET_ROLE.type).values()
    return (
        {cloud.folder.location.bucket}
        | in_use.buckets(record)
        | {mount["bucket"] for mount in mounted}
        | {str(role.get("bucket") or "").removeprefix("b/") for role in granted} - {""}
    )
