"""The document of a plan: what is asked for, what has changed, what Terraform would do.

Machines that are older than what the settings describe are told of beside it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.codes import Code
from provision.documents.deployed import OlderMachine
from provision.documents.plan import Change, Plan, SettingChange
from provision.errors import Problem
from provision.google.resources import TEMPLATE
from provision.lifecycle import opens
from provision.settings import masking
from provision.settings.derived import Derived
from provision.settings.model import OF_PROGRAM, Settings
from provision.spec import topology

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import OutOfDate, SpecT
    from provision.deployment.kind import Kind
    from provision.documents.plan import Candidate, Checks, Identity, Kept
    from provision.spec.pools import Pool
    from provision.state.record import Record
    from provision.terraform import plan as terraform

_LONGEST: Final = 60  # characters of a value that is shown
_MOST: Final = 5  # machines that are named with what differs; the JSON has all


def changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any], given: Collection[str]
) -> tuple[SettingChange, ...]:
    """What changed, in the order of the settings.

    A default that follows another setting, such as the number of GPUs that of the machine type, is
    not named beside it. `before`: the effective settings of the last Create, as its record has
    them. `given`: the settings that the user has set now, by their names in an env.list.
    """
    # Whoever may write to the bucket may have written it in clear.
    before = masking.seal_settings(before)
    # A record has been JSON, so lists and tuples are alike there.
    plain: dict[str, Any] = json.loads(json.dumps(dict(now), default=str))
    changed = [
        name
        for name, value in plain.items()
        if name in before and before[name] != value and name.lower() not in OF_PROGRAM
    ]
    return tuple(
        SettingChange(setting=name, words=", ".join(_words(before[name], plain[name])))
        for name in changed
        if name in given or not _leaders(name).intersection(changed)
    )


def _leaders(setting: str) -> set[str]:
    """The settings that the default of one is computed from."""
    default = Settings.model_fields[setting.lower()].default_factory
    return {name.upper() for name in default.of} if isinstance(default, Derived) else set()


def _words(old: Any, new: Any) -> Iterator[str]:
    kinds = (dict, type(None))
    if isinstance(old, kinds) and isinstance(new, kinds):
        yield from _entries(old or {}, new or {})
    elif _is_long(old) or _is_long(new):
        # Which way it went is no secret, and matters: what a key was for keeps it, or does not.
        was, stays = bool(old), bool(new)
        yield "changed" if was and stays else "set -> unset" if was else "unset -> set"
    else:
        yield f"{_text(old)} -> {_text(new)}"


def _entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in {**old, **new}:
        if key not in old:
            yield f"+ {key}={_text(new[key])}" if not _is_long(new[key]) else f"+ {key}"
        elif key not in new:
            yield f"- {key}"
        elif old[key] != new[key]:
            long = _is_long(old[key]) or _is_long(new[key])
            yield f"{key} changed" if long else f"{key}={_text(old[key])} -> {_text(new[key])}"


def _is_long(value: Any) -> bool:
    text = _text(value)
    return len(text) > _LONGEST or "\n" in text or masking.MASK in text


def _text(value: Any) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return "yes" if value else "no"
        case list() | dict():
            return json.dumps(value)
        case _:
            return str(value)


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
    now = context.report.settings or {}
    if record is not None:
        given = {name.upper() for name in context.settings.model_fields_set}
        changed = changed_settings(record.settings, now, given)
    # A record that was lost knows no settings.
    before = (record and record.settings) or None
    return Plan(
        change=Change.NEW if record is None else Change.CHANGE,
        topology=topology.of(spec),
        contents=kind.contents(spec),
        settings=changed,
        opens=tuple(opens.found(before, now, context.settings.metadata)),
        checks=checks,
        candidates=candidates,
    )


def complete(
    plan: Plan, cloud: Cloud, kind: Kind[SpecT], spec: SpecT, found: terraform.Plan
) -> tuple[Plan, Sequence[tuple[Pool, int]]]:
    """The plan with what Terraform would do; the machines that run and are not what it describes.

    Those are pools of their own, with how many there are of each.
    """
    kept: Kept | None = None
    running: Sequence[tuple[Pool, int]] = ()
    changes = any(it.type == TEMPLATE.type for it in found.creations)
    # Of flex start nothing is billed before it comes; what runs may have come in another way.
    if found.staying and (changes or any(pool.mode.means.requested for pool in spec.pools)):
        kept, running = kind.kept(cloud, spec, found.staying, [it.setting for it in plan.settings])
        kept = kept if changes else None
    if kept and found.held:
        stay = "stays" if len(found.held) == 1 else "stay"
        theirs = f"{words.listed(found.held)} {stay} until then"
        kept = dataclasses.replace(kept, words=f"{kept.words}; {theirs}")
    identities = tuple(_with_roles(plan.contents.identities, found.grants))
    whole = dataclasses.replace(
        plan,
        change=_change(plan, found),
        contents=dataclasses.replace(plan.contents, identities=identities),
        counts=found.nouns,
        imported=found.imported,
        losses=found.losses,
        kept=kept,
        # Of a greater number the setting tells.
        again=found.coming * all(it.setting != "INSTANCE_COUNT" for it in plan.settings),
    )
    return whole, running


def _change(plan: Plan, found: terraform.Plan) -> Change:
    if not found.matters:
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


def tell_of_older(context: Context, found: Sequence[OutOfDate]) -> None:
    """Put them into the report, and note them."""
    context.report.out_of_date = [
        OlderMachine(name=one.name, differences=one.differences) for one in found
    ]
    if found:
        context.note([note_of_older(found)])


def note_of_older(found: Sequence[OutOfDate]) -> Problem:
    """What differs, and what fixes it."""
    lines = [f"{one.name}: {'; '.join(one.differences)}" for one in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"and {words.listed([one.name for one in found[_MOST:]])}")
    instead = dict.fromkeys(f"{one.instead}\nor " for one in found if one.instead)
    count = "1 VM is" if len(found) == 1 else f"{len(found)} VMs are"
    return Problem(
        code=Code.OUT_OF_DATE,
        what=f"{count} not what Create would make now",
        why="\n".join(lines),
        fix=f"{''.join(instead)}to replace them, boot disks included: {found[0].fix}; they run, and"
        " are billed, as they are until then",
    )
