"""The permissions with which Create and Destroy make and delete, and whether one has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import accounts, names
from provision.catalogue.accounts import reads, role_with
from provision.codes import Code
from provision.documents import json_object
from provision.endpoints import Service
from provision.google import resources, service_accounts
from provision.google.service_accounts import Standing
from provision.preflight.check import Finding, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.google.resources import Resource
    from provision.preflight.check import CheckContext, OfKind
    from provision.spec.cluster import ClusterSpec
    from provision.state.location import StateLocation

_ACT_AS: Final = "iam.serviceAccounts.actAs"
_LOOKS: Final[Mapping[str, str]] = {
    "compute.instanceGroupManagers": "get list",
    "compute.instances": "get list",
    "iam.serviceAccounts": "get",
    "resourcemanager.projects": "get",
}
"""Where a cluster is looked for, and why its machines may hear of no job."""
_REACHES: Final[Mapping[str, str]] = {"container.clusters": "connect get list"}
_NAME: Final = "aiinfra_jobs"
# Roles of a bucket are added beside those with conditions only if that is said.
_ALWAYS: Final = "--condition=None"


def changing(spec: ClusterSpec, of_kind: OfKind, *, makes_bucket: bool) -> list[str]:
    """The permissions that Create and Destroy need to make and delete what is asked for, sorted."""
    more: list[Mapping[str, str]] = [of_kind.used]
    if spec.service_account == "dedicated":
        more.append({"iam.serviceAccounts": "actAs"})
    if any(pool.external_ip for pool in spec.pools):
        more.append({"compute.subnetworks": "useExternalIp"})
    if makes_bucket:
        more.append({"storage.buckets": "create get"})
    return listed([*(row.permissions for row in _made(spec, of_kind)), *more])


def listed(needs: Iterable[Mapping[str, str]]) -> list[str]:
    """Collection -> verbs as names of permissions, sorted."""
    pairs = (pair for one in needs for pair in one.items())
    return sorted({f"{collection}.{verb}" for collection, them in pairs for verb in them.split()})


def _made(spec: ClusterSpec, of_kind: OfKind) -> Iterator[Resource]:
    yield from of_kind.made
    if spec.makes_network:
        yield resources.NETWORK
        yield resources.SUBNETWORK
        yield resources.FIREWALL
        yield resources.ROUTER
        yield resources.NAT
    elif spec.makes_firewall and not spec.hosts:
        yield resources.FIREWALL
    if spec.service_account == "dedicated":
        yield resources.SERVICE_ACCOUNT
        yield resources.PROJECT_ROLE
    if any(pool.compact for pool in spec.pools):
        yield resources.RESOURCE_POLICY
    if spec.shares:
        yield resources.FILESTORE


def held(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the caller has all permissions that this env.list needs."""
    needed = changing(ctx.spec, ctx.of_kind, makes_bucket=ctx.makes_bucket)
    lacking = sorted(set(needed) - set(ctx.answers.held_permissions(ctx.project, needed)))
    to_change = sorted(it for it in needed if not reads(it))
    if lacking == to_change:
        yield refuse(
            Code.MAY_ONLY_LOOK,
            setting="PROJECT_ID",
            what=f"these credentials may change nothing in {ctx.project}",
            why=f"they have none of the {len(to_change)} permissions to change it that Create"
            " needs",
            fix="Plan and Status are for them; Create takes an account that has the role of"
            " Validate --role",
        )
    elif lacking:
        yield refuse(
            Code.PERMISSION_MISSING,
            setting="PROJECT_ID",
            what=f"these credentials lack {len(lacking)} of the {len(needed)} permissions on"
            f" {ctx.project} that they need",
            why=", ".join(lacking),
            fix="\n".join(_granting(ctx.project, lacking)),
        )
    else:
        yield Finding(permissions=len(needed))
    if ctx.spec.service_account != "dedicated":
        yield from _usable(ctx)
    elif ctx.record is not None and ctx.spec.has_control_plane:
        yield from _of_nodes(ctx)


def _of_nodes(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the account of nodes that stand is there: Create would make another one.

    VMs say which one they act as, and are told apart afterwards. Nodes don't.
    """
    main, name = ctx.of_kind.main
    prefix = ctx.spec.name_prefix
    email = accounts.of_project(names.SERVICE_ACCOUNT.of(prefix), ctx.project)
    account = service_accounts.look(ctx.answers.find, email, ctx.project)
    path = main.path(project=ctx.project, location=ctx.spec.region, name=name.of(prefix))
    if not account.is_lost:
        return
    # Those of older settings may act as another account.
    cluster = ctx.answers.find(main.look.service, path) or {}
    pools = json_object.objects(cluster.get("nodePools"))
    if any(json_object.inner(it.get("config")).get("serviceAccount") == email for it in pools):
        yield refuse(
            Code.ACCOUNT_GONE,
            what=f"the nodes act as {email}, a service account that {account.fate}",
            why="another one that is made by its address is no help to nodes that run",
            fix=account.back()
            + "\nor, if that is no longer possible, Destroy and then Create, which makes new nodes",
        )


def _granting(project: str, lacking: list[str]) -> Iterator[str]:
    """The commands that grant the missing permissions, one line for each role."""
    roles = dict.fromkeys(role_with(permission) for permission in lacking)
    yield "ask an administrator of the project to run:"
    for _, role in filter(None, roles):
        yield f"gcloud projects add-iam-policy-binding {project} --member user:YOU --role {role}"
    if None in roles:
        yield "and to grant a role with the other permissions"


def _usable(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that an account exists, and that the caller may let machines act as it."""
    is_default = ctx.spec.service_account == "default"
    project, email = ctx.project, ctx.spec.service_account
    if is_default:
        email = accounts.default(ctx.answers.project_number(project))
    else:
        project = accounts.project_of(email) or "-"
    instead = "SERVICE_ACCOUNT=dedicated, which makes one with the least roles; or " * is_default
    # That it may not be read says nothing of whether machines may act as it.
    account = service_accounts.look(ctx.answers.find, email, project)
    if account.standing is Standing.GONE and is_default:
        yield refuse(
            Code.ACCOUNT_GONE,
            setting="SERVICE_ACCOUNT",
            what=f"the project's default service account {email} is gone",
            why="somebody deleted it, and Google makes no VM that would act as it",
            fix=instead + account.back(),
        )
    elif account.standing is Standing.GONE:
        yield refuse(
            Code.RESOURCE_NOT_FOUND,
            setting="SERVICE_ACCOUNT",
            what=f"there is no service account {email}",
            why=f"the project {project} has none of this address",
            fix="check its spelling, or make it with: gcloud iam service-accounts create"
            f" {email.partition('@')[0]} --project {project}",
        )
    elif account.standing is Standing.DISABLED:
        yield refuse(
            Code.ACCOUNT_GONE,
            setting="SERVICE_ACCOUNT",
            what=f"the service account {email} is disabled",
            why="machines that act as it get no token of Google's, and so no access to anything",
            fix=instead + account.back(),
        )
    elif _ACT_AS not in ctx.answers.held(Service.IAM, f"{account.path}:", [_ACT_AS]):
        yield refuse(
            Code.PERMISSION_MISSING,
            setting="SERVICE_ACCOUNT",
            what=f"these credentials may not let machines act as {email}",
            why=f"they lack {_ACT_AS} on it",
            fix="ask an administrator of the account's project to run:\n"
            f"gcloud iam service-accounts add-iam-policy-binding {email} --member user:YOU --role"
            " roles/iam.serviceAccountUser",
        )


# ------------------------------------------------------------------ of who runs jobs (ADR 96)
#
# What Run, Jobs, Logs and Cancel write lies below `jobs/` of the deployment's folder; on GKE they
# make and delete objects of the cluster, too.


def of_submitter(spec: ClusterSpec) -> list[str]:
    """The permissions on the project of who runs jobs, and changes neither cluster nor state."""
    return listed([_LOOKS, *([_REACHES] if spec.has_control_plane else [])])


def submitters_role(spec: ClusterSpec, location: StateLocation) -> str:
    """The custom role as `gcloud iam roles create --file` reads it, and how to grant all of it."""
    project = spec.project_id
    lines = [
        f"# What Run, Jobs, Logs and Cancel need on {spec.name_prefix}, with which nobody changes",
        "# the cluster or its Terraform state. Create the role with",
        f"#   gcloud iam roles create {_NAME} --project {project} --file <this file>",
        "# and give it, and what it lacks, to <WHO>, as group:researchers@example.com:",
        *(f"#   {line}" for line in _grants(spec, location)),
        "# Who has them runs programs as the machines' account, reads the state, cancels any job.",
        f"title: {_NAME} for {spec.name_prefix}",
        "description: Run jobs on one GPU cluster, and look at it",
        "stage: GA",
        "includedPermissions:",
        *(f"- {name}" for name in of_submitter(spec)),
    ]
    return "\n".join(lines) + "\n"


def _grants(spec: ClusterSpec, location: StateLocation) -> Iterator[str]:
    project = spec.project_id
    on_project = f"gcloud projects add-iam-policy-binding {project} --member='<WHO>'"
    yield f"{on_project} --role=projects/{project}/roles/{_NAME} {_ALWAYS}"
    if spec.has_control_plane:
        # A job is an object of a custom type, for which there is no smaller role.
        yield f"{on_project} --role=roles/container.developer {_ALWAYS}"
    bucket = f"gs://{location.bucket} --member='<WHO>'"
    on_bucket = f"gcloud storage buckets add-iam-policy-binding {bucket}"
    # The bucket itself and names in it: conditions on objects say nothing of these.
    yield f"{on_bucket} --role=roles/storage.legacyBucketReader {_ALWAYS}"
    for role, part in (("objectViewer", ""), ("objectUser", "jobs/")):
        start = f"projects/_/buckets/{location.bucket}/objects/{location.folder}/{part}"
        condition = f'title={spec.name_prefix},expression=resource.name.startsWith("{start}")'
        yield f"{on_bucket} --role=roles/storage.{role} --condition='{condition}'"
