"""The checks of the project: billing, enabled APIs, the caller's permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import accounts
from provision.catalogue.permissions import reads, role_with
from provision.codes import Code
from provision.errors import Problem
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.preflight import permissions
from provision.preflight.check import Passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403
_ACT_AS: Final = "iam.serviceAccounts.actAs"


def billing(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that billing is enabled for the project."""
    answer = ctx.answers.get(Service.BILLING, f"projects/{ctx.project}/billingInfo")
    if answer.get("billingEnabled"):
        return
    account = answer.get("billingAccountName", "")
    yield Problem(
        code=Code.BILLING_OFF,
        setting="PROJECT_ID",
        what=f"billing is not enabled for the project {ctx.project}",
        why=f"{account} is linked to it, but closed" if account else "no account is linked to it",
        fix="link an open one with: gcloud billing projects link"
        f" {ctx.project} --billing-account <ACCOUNT>",
    )


def apis(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that all APIs that are needed are enabled."""
    enabled = ctx.answers.enabled_apis(ctx.project)
    needed = list(_needed_apis(ctx))
    missing = [name for name in needed if name not in enabled]
    if not missing:
        yield Passed(apis=len(needed))
    else:
        yield Problem(
            code=Code.API_OFF,
            setting="PROJECT_ID",
            what=f"{ctx.project} has not enabled {', '.join(missing)}",
            why="Google refuses all requests to an API that is not enabled",
            fix=f"gcloud services enable {' '.join(missing)} --project {ctx.project}"
            " and wait a few minutes",
        )


def _needed_apis(ctx: CheckContext[ClusterSpec]) -> Iterator[str]:
    names = ["cloudresourcemanager", "compute", "iam", "storage", *ctx.of_kind.apis]
    if ctx.spec.shares:
        names.append("file")
    return (f"{name}.googleapis.com" for name in names)


def held(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the caller has all permissions that this env.list needs."""
    needed = permissions.changing(ctx.spec, ctx.of_kind, makes_bucket=ctx.makes_bucket)
    lacking = sorted(set(needed) - set(ctx.answers.held_permissions(ctx.project, needed)))
    changing = sorted(it for it in needed if not reads(it))
    if lacking == changing:
        yield Problem(
            code=Code.MAY_ONLY_LOOK,
            setting="PROJECT_ID",
            what=f"these credentials may change nothing in {ctx.project}",
            why=f"they have none of the {len(changing)} permissions to change it that Create needs",
            fix="Plan and Status are for them; Create takes an account that has the role of"
            " Validate --role",
        )
    elif lacking:
        yield Problem(
            code=Code.PERMISSION_MISSING,
            setting="PROJECT_ID",
            what=f"these credentials lack {len(lacking)} of the {len(needed)} permissions on"
            f" {ctx.project} that they need",
            why=", ".join(lacking),
            fix="\n".join(_granting(ctx.project, lacking)),
        )
    else:
        yield Passed(permissions=len(needed))
    if ctx.spec.service_account != "dedicated":
        yield from _usable(ctx)


def _usable(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that an account exists, and that the caller may let machines act as it."""
    is_default = ctx.spec.service_account == "default"
    project, email = ctx.project, ctx.spec.service_account
    if is_default:
        email = accounts.default(ctx.answers.project_number(project))
    else:
        project = accounts.project_of(email) or "-"
    path = resources.SERVICE_ACCOUNT.path(project=project, email=email)
    instead = "SERVICE_ACCOUNT=dedicated, which makes one with the least roles; or " * is_default
    try:
        found = ctx.answers.find(Service.IAM, path)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        found = {}  # that it may not be read says nothing of whether machines may act as it
    if found is None and is_default:
        yield Problem(
            code=Code.ACCOUNT_GONE,
            setting="SERVICE_ACCOUNT",
            what=f"the project's default service account {email} is gone",
            why="somebody deleted it, and Google makes no VM that would act as it",
            fix=instead + accounts.undelete(email, project),
        )
    elif found is None:
        yield Problem(
            code=Code.RESOURCE_NOT_FOUND,
            setting="SERVICE_ACCOUNT",
            what=f"there is no service account {email}",
            why=f"the project {project} has none of this address",
            fix="check its spelling, or make it with: gcloud iam service-accounts create"
            f" {email.partition('@')[0]} --project {project}",
        )
    elif found.get("disabled"):
        yield Problem(
            code=Code.ACCOUNT_GONE,
            setting="SERVICE_ACCOUNT",
            what=f"the service account {email} is disabled",
            why="machines that act as it get no token of Google's, and so no access to anything",
            fix=f"{instead}gcloud iam service-accounts enable {email} --project {project}",
        )
    elif _ACT_AS not in ctx.answers.held_on_account(path, [_ACT_AS]):
        yield Problem(
            code=Code.PERMISSION_MISSING,
            setting="SERVICE_ACCOUNT",
            what=f"these credentials may not let machines act as {email}",
            why=f"they lack {_ACT_AS} on it",
            fix="ask an administrator of the account's project to run:\n"
            f"gcloud iam service-accounts add-iam-policy-binding {email} --member <YOU> --role"
            " roles/iam.serviceAccountUser",
        )


def _granting(project: str, lacking: list[str]) -> Iterator[str]:
    """The commands that grant the missing permissions, one line for each role."""
    roles = dict.fromkeys(role_with(permission) for permission in lacking)
    yield "ask an administrator of the project to run:"
    for _, role in filter(None, roles):
        yield (f"gcloud projects add-iam-policy-binding {project} --member <YOU> --role {role}")
    if None in roles:
        yield "and to grant a role with the other permissions"
