"""The check of organization policies: what those in force for the project would refuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import constraints
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.constraints import Constraint
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_API: Final = "orgpolicy.googleapis.com"
_AT_ONCE: Final = 8
_GROUP: Final = "in:"
_OF_GROUP: Final = "-locations"
_AREAS: Final = frozenset(
    {"asia", "australia", "eu", "europe", "northamerica", "southamerica", "us"}
)
"""Groups of whole continents, and of the European Union (Google's page on defining locations)."""
_OUTSIDE_THE_UNION: Final = frozenset({"europe-west2", "europe-west6"})
"""The regions in Europe that are not in it: London and Zurich."""

Rule = dict[str, Any]
"""A rule of a policy, as the API has it: enforce, denyAll, allowAll, or values."""


def policies(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that no policy in force forbids what this env.list asks for."""
    if not _has_organization(ctx):
        return
    if _API not in ctx.answers.enabled_apis(ctx.project):
        yield CheckNote(_unread(ctx))
        return
    asked = [(one, name) for one in _relevant(ctx) for name in one.names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rules = list(pool.map(lambda it: _rules(ctx, it[1]), asked))
    for (one, name), found in zip(asked, rules, strict=True):
        if _forbids(ctx, one, found):
            yield _problem(ctx, one, name, found)


def _has_organization(ctx: CheckContext[ClusterSpec]) -> bool:
    """Whether the project is in one: for a project of its own there are no policies."""
    path = f"projects/{ctx.project}"
    return "parent" in ctx.answers.get(Service.RESOURCE_MANAGER, path)


def _relevant(ctx: CheckContext[ClusterSpec]) -> Iterator[Constraint]:
    """The constraints on what would be made."""
    if any(pool.external_ip for pool in ctx.spec.pools):
        yield constraints.EXTERNAL_IP
    if ctx.spec.service_account == "dedicated" or ctx.of_kind.pods_account:
        yield constraints.ACCOUNT_CREATION
    if ctx.of_kind.image_project is not None:
        if not ctx.of_kind.secure_boot:
            yield constraints.SHIELDED_VM
        yield constraints.GUEST_ATTRIBUTES
        yield constraints.TRUSTED_IMAGES
    yield constraints.LOCATIONS
    if ctx.spec.kms_key is None:
        yield constraints.OWN_KEYS


def _rules(ctx: CheckContext[ClusterSpec], name: str) -> Sequence[Rule]:
    """The rules in force for a constraint; none for one that Google does not have."""
    path = f"projects/{ctx.project}/policies/{name}:getEffectivePolicy"
    found = ctx.answers.find(Service.ORG_POLICY, path) or {}
    rules: Sequence[Rule] = found.get("spec", {}).get("rules", [])
    return rules


def _forbids(ctx: CheckContext[ClusterSpec], one: Constraint, rules: Sequence[Rule]) -> bool:
    if any(rule.get("enforce") or rule.get("denyAll") for rule in rules):
        return True
    values = [rule["values"] for rule in rules if "values" in rule]
    if one is constraints.EXTERNAL_IP:
        # It allows VMs by their whole names, and nobody knows those of a group before they come.
        return any(it.get("allowedValues") for it in values)
    if one is constraints.TRUSTED_IMAGES:
        project = f"projects/{ctx.of_kind.image_project}"
        return any(_excludes(it, {project, f"is:{project}"}) for it in values)
    if one is constraints.OWN_KEYS:
        return any(_stored(ctx) & set(it.get("deniedValues", ())) for it in values)
    if one is constraints.LOCATIONS:
        return any(_excludes(it, _locations(ctx), groups=True) for it in values)
    return False


def _stored(ctx: CheckContext[ClusterSpec]) -> set[str]:
    """The APIs of what keeps data in this env.list, as the constraint on keys denies them."""
    names = {"compute"}
    names |= {"container"} if ctx.spec.has_control_plane else set()
    names |= {"file"} if ctx.spec.shares else set()
    names |= {"storage"} if ctx.makes_bucket else set()
    return {f"{prefix}{name}.googleapis.com" for name in names for prefix in ("", "is:")}


def _excludes(values: Mapping[str, Any], own: set[str], *, groups: bool = False) -> bool:
    """Whether a list allows nothing of ours, or denies some of it.

    `groups`: whether there are groups of values that `own` may miss; one of an unknown name may
    have what is ours, and allows it.
    """
    if own & set(values.get("deniedValues", [])):
        return True
    allowed = set(values.get("allowedValues", []))
    unknown = groups and any(
        value.startswith("under:") or (value.startswith(_GROUP) and not _is_known(value))
        for value in allowed
    )
    return bool(allowed) and not own & allowed and not unknown


def _is_known(group: str) -> bool:
    """Whether a group of locations is that of a region or of a continent in its name."""
    place = group.removeprefix(_GROUP).removesuffix(_OF_GROUP)
    return place in _AREAS or place[-1:].isdecimal()


def _locations(ctx: CheckContext[ClusterSpec]) -> set[str]:
    """What a policy may call the place of this env.list: zone, region, and the groups of both."""
    region, zone = ctx.spec.region, ctx.spec.zone
    continent = region.partition("-")[0]
    union = "eu" if continent == "europe" and region not in _OUTSIDE_THE_UNION else ""
    groups = {f"{_GROUP}{place}{_OF_GROUP}" for place in (zone, region, continent, union) if place}
    return {zone, region, f"is:{zone}", f"is:{region}", *groups}


def _problem(
    ctx: CheckContext[ClusterSpec], one: Constraint, name: str, rules: Sequence[Rule]
) -> Problem:
    allowed = [it for rule in rules for it in rule.get("values", {}).get("allowedValues", [])]
    says = f"constraints/{name} is in force"
    return Problem(
        code=Code.POLICY_FORBIDS,
        setting=one.setting,
        what=f"a policy of the organization {one.forbids}",
        why=f"{says}, and allows {', '.join(allowed)}" if allowed else says,
        fix="\n".join(filter(None, [constraints.exception_for(name, ctx.project), one.instead])),
    )


def _unread(ctx: CheckContext[ClusterSpec]) -> Problem:
    return Problem(
        code=Code.NOT_CHECKED,
        setting="PROJECT_ID",
        what="could not check whether policies of the organization forbid some of this",
        why=f"{ctx.project} has not enabled {_API}",
        fix=f"gcloud services enable {_API} --project {ctx.project}, and get the role Organization"
        " Policy Viewer (roles/orgpolicy.policyViewer); or go on: Create says so if one does",
    )
