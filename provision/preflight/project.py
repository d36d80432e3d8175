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


def billing(case: Case) -> Iterator[Finding]:
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


def apis(case: Case) -> Iterator[Finding]:
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


def _needed_apis(case: Case) -> Iterator[str]:
    settings = case.settings
    names = ["cloudresourcemanager", "compute", "iam", "storage"]
    if case.is_gke:
        names.append("container")
    if settings.nfs_fileshare_list:
        names.append("file")
    if case.is_gke or not settings.disable_ops_agent:
        names += ["logging", "monitoring"]
    return (f"{name}.googleapis.com" for name in names)


def held(case: Case) -> Iterator[Finding]:
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


def needed_permissions(case: Case) -> list[str]:
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


def _made(case: Case) -> Iterator[Resource]:
    """The types of what Terraform makes for this env.list."""
    settings = case.settings
    if case.is_gke:
        yield resources.CLUSTER
        yield resources.NODE_POOL
        # The account of the pods, which Kubernetes' own account acts as.
        yield resources.SERVICE_ACCOUNT
        yield resources.ACCOUNT_ROLE
    else:
        yield resources.GROUP
        yield resources.TEMPLATE
        if settings.enable_flex_start:
            yield resources.RESIZE_REQUEST
    if case.makes_network:
        yield resources.NETWORK
        yield resources.SUBNETWORK
        yield resources.FIREWALL
        yield resources.ROUTER
        yield resources.NAT
    if settings.service_account == "dedicated":
        yield resources.SERVICE_ACCOUNT
        yield resources.PROJECT_ROLE
    if settings.enable_compact_placement:
        yield resources.RESOURCE_POLICY
    if settings.nfs_fileshare_list:
        yield resources.FILESTORE
    if not case.is_gke and not settings.disable_ops_agent:
        yield resources.DASHBOARD


def _used(case: Case) -> Iterator[Mapping[str, str]]:
    """What more is done for this env.list than to make and remove resources."""
    settings = case.settings
    if settings.service_account == "dedicated":
        yield {"iam.serviceAccounts": "actAs"}
    if settings.enable_external_ip and not case.is_gke:
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
