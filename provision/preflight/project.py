"""The checks of the project: who pays, which APIs are on, what the caller may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import permissions
from provision.errors import Problem
from provision.google.api import Service

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.case import Case, Finding
    from provision.spec.cluster import ClusterSpec


def billing(case: Case[ClusterSpec]) -> Iterator[Finding]:
    """An account pays for the project."""
    answer = case.answers.get(Service.BILLING, f"projects/{case.project}/billingInfo")
    if answer.get("billingEnabled"):
        return
    account = answer.get("billingAccountName", "")
    yield Problem(
        setting="PROJECT_ID",
        what=f"nobody pays for the project {case.project}",
        why=f"{account} is linked to it, but closed" if account else "no account is linked to it",
        fix="link an open one with: gcloud billing projects link"
        f" {case.project} --billing-account <ACCOUNT>",
    )


def apis(case: Case[ClusterSpec]) -> Iterator[Finding]:
    """All APIs that are needed are enabled."""
    enabled = case.answers.enabled_apis(case.project)
    missing = [name for name in _needed_apis(case) if name not in enabled]
    if missing:
        yield Problem(
            setting="PROJECT_ID",
            what=f"{case.project} has not enabled {', '.join(missing)}",
            why="Google refuses all requests to an API that is not enabled",
            fix=f"gcloud services enable {' '.join(missing)} --project {case.project}"
            " and wait a few minutes",
        )


def _needed_apis(case: Case[ClusterSpec]) -> Iterator[str]:
    names = ["cloudresourcemanager", "compute", "iam", "storage", *case.of_kind.apis]
    if case.spec.shares:
        names.append("file")
    return (f"{name}.googleapis.com" for name in names)


# What the provider, and the tool itself, do with each collection, as Google's references of the
# APIs' methods name the permissions. What may as well be granted on a single bucket or service
# account is not here: the project's answer would not count it.
_NETWORK: Final = {
    "compute.firewalls": "create delete get",
    "compute.networks": "create delete get updatePolicy use",
    "compute.routers": "create delete get update",
    "compute.subnetworks": "create delete get use",
}
_ACCOUNT: Final = {
    "iam.serviceAccounts": "actAs create delete get",
    "resourcemanager.projects": "getIamPolicy setIamPolicy",
}


def held(case: Case[ClusterSpec]) -> Iterator[Finding]:
    """The caller may do all that is needed for this env.list."""
    needed = needed_permissions(case)
    lacking = sorted(set(needed) - set(case.answers.held_permissions(case.project, needed)))
    if not lacking:
        return
    yield Problem(
        setting="PROJECT_ID",
        what=f"these credentials lack {len(lacking)} of the {len(needed)} permissions on"
        f" {case.project} that are needed",
        why=", ".join(lacking),
        fix="\n".join(_granting(case.project, lacking)),
    )


def needed_permissions(case: Case[ClusterSpec]) -> list[str]:
    """The permissions on the project that Create and Destroy need, sorted."""
    found = set()
    for methods in _needed(case):
        for collection, verbs in methods.items():
            found |= {f"{collection}.{verb}" for verb in verbs.split()}
    return sorted(found)


def _needed(case: Case[ClusterSpec]) -> Iterator[Mapping[str, str]]:
    yield case.of_kind.permissions
    if case.spec.makes_network:
        yield _NETWORK
    if case.spec.service_account == "dedicated":
        yield _ACCOUNT
    if any(pool.compact for pool in case.spec.pools):
        yield {"compute.resourcePolicies": "create delete get use"}
    if case.spec.shares:
        yield {"file.instances": "create delete get"}
    if case.makes_bucket:
        yield {"storage.buckets": "create get"}


def _granting(project: str, lacking: list[str]) -> Iterator[str]:
    """One line for each role that would help."""
    roles = dict.fromkeys(permissions.role_with(permission) for permission in lacking)
    yield "ask whoever administers the project for:"
    for _, role in filter(None, roles):
        yield (f"gcloud projects add-iam-policy-binding {project} --member <YOU> --role {role}")
    if None in roles:
        yield "and for a role with the rest"
