"""The checks of the project: billing, enabled APIs, and the organization's policies in force."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import constraints, names
from provision.codes import Code
from provision.google import resources
from provision.google.api import Service
from provision.preflight.check import Finding, note, refuse
from provision.preflight.made import Made

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.constraints import Constraint
    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec

_POLICIES_API: Final = "orgpolicy.googleapis.com"
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


def billing(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that billing is enabled for the project."""
    answer = ctx.answers.get(Service.BILLING, f"projects/{ctx.project}/billingInfo")
    if answer.get("billingEnabled"):
        return
    account = answer.get("billingAccountName", "")
    yield refuse(
        Code.BILLING_OFF,
        setting="PROJECT_ID",
        what=f"billing is not enabled for the project {ctx.project}",
        why=f"{account} is linked to it, but closed" if account else "no account is linked to it",
        fix="link an open one with: gcloud billing projects link"
        f" {ctx.project} --billing-account <ACCOUNT>",
    )


def apis(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that all APIs that are needed are enabled."""
    enabled = ctx.answers.enabled_apis(ctx.project)
    apis = ["cloudresourcemanager", "compute", "iam", "storage", *ctx.of_kind.apis]
    apis += ["file"] if ctx.spec.shares else []
    needed = [f"{name}.googleapis.com" for name in apis]
    missing = [name for name in needed if name not in enabled]
    if not missing:
        yield Finding(apis=len(needed))
    else:
        yield refuse(
            Code.API_OFF,
            setting="PROJECT_ID",
            what=f"{ctx.project} has not enabled {', '.join(missing)}",
            why="Google refuses all requests to an API that is not enabled",
            fix=f"gcloud services enable {' '.join(missing)} --project {ctx.project}"
            " and wait a few minutes",
        )


# ------------------------------------------------------------------ policies


def policies(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that no policy in force forbids what this env.list asks for."""
    if "parent" not in ctx.answers.project(ctx.project):
        return  # it is in no organization
    if _POLICIES_API not in ctx.answers.enabled_apis(ctx.project):
        yield note(
            Code.NOT_CHECKED,
            setting="PROJECT_ID",
            what="could not check whether policies of the organization forbid some of this",
            why=f"{ctx.project} has not enabled {_POLICIES_API}",
            fix=f"gcloud services enable {_POLICIES_API} --project {ctx.project}, and get the role"
            " Organization Policy Viewer (roles/orgpolicy.policyViewer); or go on: Create says so"
            " if one does",
        )
        return
    asked = [(one, name) for one in _relevant(ctx) for name in one.names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        every = list(pool.map(lambda it: _rules(ctx, it[1]), asked))
    for (one, name), rules in zip(asked, every, strict=True):
        if _forbids(ctx, one, rules):
            says = f"constraints/{name} is in force"
            allowed = [
                it for rule in rules for it in rule.get("values", {}).get("allowedValues", ())
            ]
            exception = constraints.exception_for(name, ctx.project)
            yield refuse(
                Code.POLICY_FORBIDS,
                setting=one.setting,
                what=f"a policy of the organization {one.forbids}",
                why=f"{says}, and allows {', '.join(allowed)}" if allowed else says,
                fix="\n".join(filter(None, [exception, one.instead])),
            )


def _relevant(ctx: CheckContext[ClusterSpec]) -> Iterator[Constraint]:
    if any(pool.external_ip for pool in ctx.spec.pools):
        yield constraints.EXTERNAL_IP
    if _makes_account(ctx):
        yield constraints.ACCOUNT_CREATION
    if ctx.of_kind.image_project is not None:
        if not ctx.of_kind.secure_boot:
            yield constraints.SHIELDED_VM
        yield constraints.GUEST_ATTRIBUTES
        yield constraints.TRUSTED_IMAGES
    yield constraints.LOCATIONS
    if ctx.spec.kms_key is None:
        yield constraints.OWN_KEYS


def _makes_account(ctx: CheckContext[ClusterSpec]) -> bool:
    if ctx.of_kind.pods_account:
        return True
    own = Made(resources.SERVICE_ACCOUNT, names.SERVICE_ACCOUNT.of(ctx.spec.name_prefix))
    return ctx.spec.service_account == "dedicated" and not own.is_there(ctx)


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
    apis = {"compute"}
    apis |= {"container"} if ctx.spec.has_control_plane else set()
    apis |= {"file"} if ctx.spec.shares else set()
    apis |= {"storage"} if ctx.makes_bucket else set()
    return {f"{prefix}{name}.googleapis.com" for name in apis for prefix in ("", "is:")}


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
