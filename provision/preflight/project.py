"""The checks of the project: who pays, which APIs are on, what the caller may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import permissions
from provision.errors import Problem
from provision.google import resources
from provision.google.api import Service

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.google.resources import Resource
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
    methods = [row.permissions for row in _made(case)] + list(_used(case))
    return sorted(
        f"{collection}.{verb}"
        for collection, verb in {
            (collection, verb)
            for one in methods
            for collection, verbs in one.items()
            for verb in verbs.split()
        }
    )


def _made(case: Case[ClusterSpec]) -> Iterator[Resource]:
    """The types of what Terraform makes for this env.list."""
    yield from case.of_kind.made
    if case.spec.makes_network:
        yield resources.NETWORK
        yield resources.SUBNETWORK
        yield resources.FIREWALL
        yield resources.ROUTER
        yield resources.NAT
    if case.spec.service_account == "dedicated":
        yield resources.SERVICE_ACCOUNT
        yield resources.PROJECT_ROLE
    if any(pool.compact for pool in case.spec.pools):
        yield resources.RESOURCE_POLICY
    if case.spec.shares:
        yield resources.FILESTORE


def _used(case: Case[ClusterSpec]) -> Iterator[Mapping[str, str]]:
    """What more is done for this env.list than to make and remove resources."""
    if case.spec.service_account == "dedicated":
        yield {"iam.serviceAccounts": "actAs"}
    if any(pool.external_ip for pool in case.spec.pools):
        yield {"compute.subnetworks": "useExternalIp"}
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
