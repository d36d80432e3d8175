"""From what is there and what is wanted to a plan, as HashiCorp's plugin SDK v2 makes it.

The rules, which decide whether a second plan is empty and what a change costs:

* A default stands in for what is not configured. A value not configured that Google may decide
  keeps what it was, and is unknown for a new object.
* What was zero ("", 0, false, no elements) and is not configured any more has not changed; a string
  that was null and is "" has not changed either, nor has a set in another order.
* A difference that the resource type suppresses keeps the prior value.
* Lists of blocks correspond by index, sets by equal elements.
* A changed field with ForceNew replaces the object, and so does the gain or loss of a block that
  has such fields.
"""

import dataclasses
import ipaddress
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.schema import Field
from rehearsal.provider.validation import Path
from rehearsal.provider.values import is_known

Suppress = Mapping[str, Callable[[Any, Any, State], bool]]


def plan(
    block: Mapping[str, Field], prior: State | None, proposed: State, suppress: Suppress
) -> State:
    """The plan for one object.

    `prior`: the state before, None for a new object. `proposed`: Terraform's merge of the
    configuration and what was computed before. `suppress`: where a difference is none, as
    `resource.Resource.suppress`. Returns the values after the apply, UNKNOWN where only the apply
    tells. Equal to the prior state when there is nothing to do.
    """
    planner = _Planner(prior, suppress, UNKNOWN if prior is None else None)
    planned = planner.block(block, prior, proposed, "")
    if prior is not None and not any(differences(block, prior, planned)):
        return prior  # other timeouts alone are no change to the SDK
    return planned


@dataclass(frozen=True, slots=True)
class _Planner:
    prior_state: State | None  # the whole state before, for the suppressing functions
    suppress: Suppress
    # what an attribute becomes that Google may decide and that had no value before: the SDK has it
    # unknown in a new object and in a new element of a set, else null
    fresh: Any

    def block(
        self,
        block: Mapping[str, Field],
        prior: Mapping[str, Any] | None,
        wanted: Mapping[str, Any],
        path: str,
    ) -> State:
        """Plan one block, which was not there if `prior` is None."""
        planned: State = {}
        for name, field in block.items():
            inner = f"{path}.{name}" if path else name
            if prior is None:
                planned[name] = self._new(field, wanted[name], inner)
            else:
                planned[name] = self._old(field, prior[name], wanted[name], inner)
        return planned

    def _new(self, field: Field, wanted: Any, path: str) -> Any:
        if field.computed and is_empty(wanted):
            return UNKNOWN if field.nesting else self.fresh
        return self._changed(field, [], _or_default(field, wanted), path)

    def _old(self, field: Field, prior: Any, wanted: Any, path: str) -> Any:
        if field.computed and is_empty(wanted):
            return prior
        wanted = _or_default(field, wanted)
        if same(field, prior, wanted) or self._is_suppressed(path, prior, wanted):
            return prior
        return self._changed(field, prior, wanted, path)

    def _changed(self, field: Field, prior: Any, wanted: Any, path: str) -> Any:
        if wanted is UNKNOWN or not field.repeated:
            return wanted
        if field.nesting == "list":
            befores = itertools.chain(prior, itertools.repeat(None))
            pairs = zip(befores, wanted, strict=False)
            return [self.block(field.block, before, each, path) for before, each in pairs]
        return self._set(field.block, list(prior), wanted, path)

    def _set(
        self, block: Mapping[str, Field], left: list[Any], wanted: list[Any], path: str
    ) -> list[Any]:
        """Plan a set: an element stays if planning it against a prior one finds no difference."""
        newcomers = dataclasses.replace(self, fresh=UNKNOWN)
        planned = []
        for each in wanted:
            stays = next((one for one in left if self._stays(block, one, each, path)), None)
            if stays is None:
                planned.append(newcomers.block(block, None, each, path))
            else:
                left.remove(stays)
                planned.append(stays)
        return planned

    def _stays(self, block: Mapping[str, Field], prior: State, wanted: State, path: str) -> bool:
        return not any(differences(block, prior, self.block(block, prior, wanted, path)))

    def _is_suppressed(self, path: str, prior: Any, wanted: Any) -> bool:
        rule = self.suppress.get(path)
        if rule is None or self.prior_state is None or not is_known(wanted):
            return False
        return rule(prior, wanted, self.prior_state)


def _or_default(field: Field, wanted: Any) -> Any:
    return field.default if wanted is None else wanted


def is_empty(value: Any) -> bool:
    """Whether a value counts as not configured where Google may decide it."""
    return value is None or value in ("", [], {})


def same(field: Field, prior: Any, value: Any) -> bool:
    """Whether going from one attribute value to the other is no change."""
    if prior is UNKNOWN or value is UNKNOWN:
        return False
    if value is None:
        return not prior
    if prior is None:
        return is_empty(value)
    if isinstance(prior, list) and "set" in (field.nesting, field.type[:1] and field.type[0]):
        return len(prior) == len(value) and all(each in prior for each in value)
    return bool(prior == value)


def differences(
    block: Mapping[str, Field], prior: Mapping[str, Any], planned: Mapping[str, Any]
) -> Iterator[tuple[Path, Field]]:
    """Where a plan differs from the prior state.

    Yields the path and the field of each difference. Where blocks come or go, that is the path of
    their list or set, and the paths of the values that come or go with them.
    """
    for name, field in block.items():
        yield from _field_differences((name,), field, prior[name], planned[name])


def _field_differences(
    path: Path, field: Field, prior: Any, planned: Any
) -> Iterator[tuple[Path, Field]]:
    if field.nesting == "single" or same(field, prior, planned):
        return
    if not field.repeated or planned is UNKNOWN or prior is UNKNOWN:
        yield path, field
    elif field.nesting == "list":
        yield from _list_differences(path, field, prior or [], planned or [])
    else:
        yield from _set_differences(path, field, prior or [], planned or [])


def _list_differences(
    path: Path, field: Field, prior: list[Any], planned: list[Any]
) -> Iterator[tuple[Path, Field]]:
    if len(prior) != len(planned):
        yield path, field
    for index in range(max(len(prior), len(planned))):
        if index >= len(planned):
            found = _losses(field.block, prior[index])
        else:
            before = prior[index] if index < len(prior) else nothing(field.block)
            found = differences(field.block, before, planned[index])
        for inner, changed in found:
            yield (*path, index, *inner), changed


def _set_differences(
    path: Path, field: Field, prior: list[Any], planned: list[Any]
) -> Iterator[tuple[Path, Field]]:
    gone = [each for each in prior if each not in planned]
    new = [each for each in planned if each not in prior]
    if gone or new:
        yield path, field
    found = (
        *(_losses(field.block, before) for before in gone),
        *(differences(field.block, nothing(field.block), after) for after in new),
    )
    for _, changed in itertools.chain(*found):
        yield path, changed  # Terraform's paths can't point into a set


def _losses(block: Mapping[str, Field], gone: Mapping[str, Any]) -> Iterator[tuple[Path, Field]]:
    """What goes with a block; what Google may decide does not count."""
    for name, field in block.items():
        if not field.computed:
            empty: Any = [] if field.repeated else None
            yield from _field_differences((name,), field, gone[name], empty)


def nothing(block: Mapping[str, Field]) -> State:
    """The value of a block that is not there, for comparison."""
    return {name: [] if field.repeated else None for name, field in block.items()}


def replacements(block: Mapping[str, Field], prior: State, planned: State) -> list[Path]:
    """The paths whose change needs another object, each once; empty if none does."""
    return list(
        dict.fromkeys(
            path
            for path, field in differences(block, prior, planned)
            if field.force_new or _is_forced(path, prior, planned)
        )
    )


def _is_forced(path: Path, prior: State, planned: State) -> bool:
    """Whether the provider's CustomizeDiff asks for another object because of a change."""
    rule = _FORCED.get(".".join(step for step in path if isinstance(step, str)))
    return rule is not None and rule(_at(prior, path), _at(planned, path))


def _at(state: State, path: Path) -> Any:
    """The value at a path; None where there is no such block."""
    value: Any = state
    for step in path:
        if value in ([], UNKNOWN):
            return None
        value = value[step]
    return value


def _shrinks(old: str, new: Any) -> bool:
    """Whether a subnetwork's range does not hold all of the old one."""
    if UNKNOWN in {old, new}:
        return False
    return not ipaddress.IPv4Network(old).subnet_of(ipaddress.IPv4Network(new))


_FORCED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "ip_cidr_range": _shrinks,
    # A group's; the SDK reads what is not known yet as empty (7.45.0,
    # resource_compute_instance_group_manager.go:58 and field_reader_diff.go of the SDK).
    "resource_policies.workload_policy": lambda old, new: bool(old) and (not new or new is UNKNOWN),
}


def settle(block: Mapping[str, Field], result: State, guide: State) -> State:
    """A result in the words of what was planned, or of the state before a read.

    Null, "" and empty mean the same to Google, and a set has no order: where only that differs, the
    guide's form stays, so that Terraform sees no change. Timeouts are the configuration's alone.
    """
    return {name: _settle(field, result[name], guide[name]) for name, field in block.items()}


def _settle(field: Field, result: Any, guide: Any) -> Any:
    if field.nesting == "single":
        return guide
    if guide is UNKNOWN or result is UNKNOWN:
        return result
    if field.nesting == "list" and len(guide) == len(result):
        return [settle(field.block, each, of) for each, of in zip(result, guide, strict=True)]
    alike = (
        is_empty(result) if is_empty(guide) else result is not None and same(field, guide, result)
    )
    return guide if alike else result
