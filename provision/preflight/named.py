"""The checks of what the settings name and others keep: a key of Cloud KMS, secrets, buckets.

`state.folder` checks the bucket of the state.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import accounts, zones
from provision.codes import Code
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import Effect, Finding, note, refuse, seen
from provision.preflight.networks import lets
from provision.settings.choices import OnlineCheck
from provision.spec.cluster import BucketGrant
from provision.state.location import DEEPEST, FOLDER, RECORD, STATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import Answers, CheckContext
    from provision.settings.pairs import Secret
    from provision.settings.storage import JobMount
    from provision.spec.cluster import ClusterSpec

_SETTING: Final = "KMS_KEY"
_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_USING: Final = frozenset({_ROLE, "roles/cloudkms.cryptoOperator"})
# Secret Manager, "Access control with IAM", read 2026-11-29.
_READING: Final = frozenset({"roles/secretmanager.secretAccessor", "roles/secretmanager.admin"})
_FORBIDDEN: Final = 403
_EXISTS: Final = (
    "exists",
    "if it belongs to another project, make sure that the VMs' service account may use it",
)
_MOST: Final = 50  # requests for folders of one bucket; a list has up to 1,000 entries
_TOO_MANY: Final = (
    "holds states",
    "see to it that it holds none",
    f"not all of its folders were looked at: {_MOST} lists were not enough",
)
_HOLDS_NONE: Final = (
    "holds states",
    "get the role Storage Object Viewer on it, or see to it that it holds none",
)


def key(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the key fits, can encrypt, and that Google may use it, as far as one may see."""
    path = ctx.spec.kms_key or ""  # never empty, or there is nothing to check
    name = path.rpartition("/")[2]
    # More than disks is encrypted, for which a key of several regions will not do.
    is_strict = bool(ctx.spec.has_control_plane or ctx.spec.shares or ctx.makes_bucket)
    why = zones.why_key_is_elsewhere(path, ctx.spec.region, strict=is_strict)
    if why:
        yield refuse(
            Code.INCOMPATIBLE_REQUEST,
            setting=_SETTING,
            what=f"{name} is in {path.split('/')[3]}",
            why=why,
            fix=f"a key in {ctx.spec.region}",
        )
    found, refused = seen(lambda: ctx.answers.find(Service.KMS, path))
    if refused is not None:
        yield _unseen(f"whether {path} can encrypt", refused)
    elif found is None:
        yield refuse(
            Code.RESOURCE_NOT_FOUND,
            setting=_SETTING,
            what=f"there is no {path}",
            why="this tool makes no keys",
            fix="check its spelling, or ask whoever keeps your keys to make it",
        )
        return
    else:
        purpose, state = found.get("purpose"), (found.get("primary") or {}).get("state", "missing")
        is_other = purpose != "ENCRYPT_DECRYPT"
        if is_other or state != "ENABLED":
            yield refuse(
                Code.INCOMPATIBLE_REQUEST,
                setting=_SETTING,
                what=f"{name} can't encrypt disks",
                why=f"its purpose is {purpose}" if is_other else f"its primary version is {state}",
                fix="name a key for symmetric encryption"
                if is_other
                else "enable its primary version",
            )
    yield from _grants(ctx, path)


def _grants(ctx: CheckContext[ClusterSpec], path: str) -> Iterator[Finding]:
    """Check that Google's service agents may use the key, be it by its ring's or project's policy.

    Source of who uses it for what: Cloud KMS, "Customer-managed encryption keys", and Cluster
    Toolkit's module kms-key-iam (2026).
    """
    project, ring = path.split("/")[1], path.partition("/cryptoKeys/")[0]
    asked = [
        seen(lambda: ctx.answers.get(Service.KMS, f"{path}:getIamPolicy")),
        seen(lambda: ctx.answers.get(Service.KMS, f"{ring}:getIamPolicy")),
        seen(lambda: ctx.answers.policy_of_project(project)),
    ]
    bindings = [one for policy, _ in asked if policy for one in policy.get("bindings", [])]
    refused = next((error for _, error in asked if error), None)
    lacking = {
        agent: what
        for agent, what in _agents_of(ctx).items()
        if not any(lets(one, agent, _USING) for one in bindings)
    }
    if not lacking:
        return
    granting = "\n".join(
        [f"ask whoever keeps the keys of {project} to run:"]
        + [
            f"gcloud kms keys add-iam-policy-binding {path} --member serviceAccount:{agent}"
            f" --role {_ROLE}"
            for agent in lacking
        ]
    )
    if refused is not None:
        yield _unseen("whether Google's service agents may use the key", refused, granting)
        return
    yield refuse(
        Code.PERMISSION_MISSING,
        setting=_SETTING,
        what=f"Google's service agents may not use {path.rpartition('/')[2]}",
        why="; ".join(f"{agent} encrypts {what}" for agent, what in lacking.items()),
        fix=f"{granting}\nSKIP_CHECKS={OnlineCheck.KMS_KEY}"
        " if a folder or the organization grants it",
    )


def _agents_of(ctx: CheckContext[ClusterSpec]) -> dict[str, str]:
    """Google's service agents that use the key -> for what."""
    number = ctx.answers.project_number(ctx.project)
    found = {"compute-system": "boot disks"}
    if ctx.spec.has_control_plane:
        found["container-engine-robot"] = "Kubernetes' secrets"
    if ctx.spec.shares:
        found["cloud-filer"] = "Filestore shares"
    if ctx.makes_bucket:
        found["gs-project-accounts"] = "the state"
    return {
        f"service-{number}@{agent}.iam.gserviceaccount.com": what for agent, what in found.items()
    }


def _unseen(what: str, error: GoogleApiError, otherwise: str = "") -> Finding:
    return note(
        Code.NOT_CHECKED,
        setting=_SETTING,
        what=f"could not see {what}",
        why=error.message,
        fix=f"if not, {otherwise}" if otherwise else "",
    )


def secrets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the secrets exist, as far as these credentials may see them."""
    for path in dict.fromkeys(secret.path for secret in ctx.spec.secrets):
        found, refused = seen(partial(ctx.answers.find, Service.SECRET_MANAGER, path))
        if refused is not None:
            yield note(
                Code.NOT_CHECKED,
                setting="SECRETS",
                what=f"could not check whether {path} exists",
                why=refused.message,
                fix="make sure that it does, and that the cluster's account may read it",
            )
        elif found is None:
            yield refuse(
                Code.RESOURCE_NOT_FOUND,
                setting="SECRETS",
                what=f"there is no {path}",
                why="this tool does not make the secrets that a cluster reads",
                fix="check its spelling, or make it with: gcloud secrets create"
                f" {path.rpartition('/')[2]} --project {path.split('/')[1]} --data-file -",
            )


def denied(answers: Answers, secret: Secret, account: str) -> tuple[Code, str] | None:
    """Why an account may not read a secret, as far as these credentials may see; None if it may.

    What Google has no such secret for is RESOURCE_NOT_FOUND, and what can't be seen NOT_CHECKED.
    """
    found, refused = seen(partial(answers.find, Service.SECRET_MANAGER, secret.path))
    if found is None and refused is None:
        return Code.RESOURCE_NOT_FOUND, ""
    asked = [
        seen(partial(answers.get, Service.SECRET_MANAGER, f"{secret.path}:getIamPolicy")),
        seen(partial(answers.policy_of_project, secret.project)),
    ]
    bindings = [one for policy, _ in asked if policy for one in policy.get("bindings", [])]
    ours = f"/secrets/{secret.secret}/"  # in a condition as Create writes it
    if any(
        lets(one, account, _READING)
        and ours in one.get("condition", {"expression": ours}).get("expression", "")
        for one in bindings
    ):
        return None
    unseen = next((error for error in (refused, *(it for _, it in asked)) if error), None)
    return (Code.NOT_CHECKED, unseen.message) if unseen else (Code.SECRETS_UNREADABLE, "")


_STORAGE: Final = "roles/storage."
_CHANGING: Final = frozenset(
    f"{_STORAGE}{it}"
    for it in ("objectUser", "objectAdmin", "admin", "legacyBucketWriter", "legacyBucketOwner")
)


def role_of(*, read_only: bool) -> str:
    """The role on a bucket of the machines' account that mounts it."""
    return f"{_STORAGE}{'objectViewer' if read_only else 'objectUser'}"


def closed(answers: Answers, mount: JobMount, account: str) -> tuple[Code, str] | None:
    """Why an account may not use a bucket, as `denied` says it of a secret; None if it may."""
    found, refused = seen(partial(answers.find, Service.STORAGE, f"b/{mount.bucket}"))
    if found is None and refused is None:
        return Code.RESOURCE_NOT_FOUND, ""
    policy, unseen = seen(partial(answers.find, Service.STORAGE, f"b/{mount.bucket}/iam"))
    roles = _CHANGING | {role_of(read_only=mount.read_only)}
    if any(
        lets(one, account, roles) or ("allUsers" in one.get("members", ()) and mount.read_only)
        for one in (policy or {}).get("bindings", [])
    ):
        return None
    unseen = refused or unseen
    return (Code.NOT_CHECKED, unseen.message) if unseen else (Code.NOTE, "")


def buckets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the buckets to mount exist, hold no states, and how access to them is granted."""
    grants: dict[str, BucketGrant] = {}
    for bucket in dict.fromkeys(mount.bucket for mount in ctx.spec.buckets):
        unknown = _EXISTS
        try:
            found = ctx.answers.find(Service.STORAGE, f"b/{bucket}")
            if found is None:
                yield _missing(bucket)
                continue
            yield from _access(ctx, bucket, found, grants)
            unknown = _HOLDS_NONE
            folder = _of_deployment(ctx, bucket)
            if folder is None:
                yield _unseen_bucket(bucket, *_TOO_MANY)
            elif folder:
                yield _holds_states(bucket, folder)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            if unknown is _EXISTS and not _is_granted(ctx, bucket):
                grants[bucket] = BucketGrant.GIVEN
            yield _unseen_bucket(bucket, *unknown, error.message)
    if grants:
        yield Finding(settled={"bucket_grants": grants})


def _access(
    ctx: CheckContext[ClusterSpec],
    bucket: str,
    found: Mapping[str, Any],
    grants: dict[str, BucketGrant],
) -> Iterator[Finding]:
    """Decide how the machines get in where that is not by a binding of this deployment's.

    Roles on a bucket may have conditions with uniform bucket-level access alone (Cloud Storage,
    "Use IAM Conditions on buckets", read in 2026-11). Pods have an account of their own.
    """
    access = found.get("iamConfiguration", {}).get("uniformBucketLevelAccess", {})
    shares_account = ctx.spec.service_account != "dedicated" and not ctx.spec.has_control_plane
    _, refused = seen(partial(ctx.answers.find, Service.STORAGE, f"b/{bucket}/iam"))
    if refused is not None and not _is_granted(ctx, bucket):
        # Nobody grants a role in a policy that they may not read.
        grants[bucket] = BucketGrant.GIVEN
        role = role_of(read_only=ctx.spec.buckets_read_only)
        yield _of_its_owner(bucket, role, refused.message)
    elif shares_account and not access.get("enabled"):
        grants[bucket] = BucketGrant.GIVEN
        yield _shared(ctx, bucket)


def _is_granted(ctx: CheckContext[ClusterSpec], bucket: str) -> bool:
    """Whether the state has a role on the bucket, which a change would else take away."""
    return any(it.startswith(f"b/{bucket}/") for it in ctx.in_state)


def _of_its_owner(bucket: str, role: str, why: str) -> Finding:
    return note(
        Code.NOT_CHECKED,
        setting="GCS_MOUNT_LIST",
        what=f"no role on gs://{bucket} is given to the machines",
        why=f"these credentials may not see who has which role in it: {why}",
        fix="whoever owns it lets the machines' account in, unless everybody may: gcloud storage"
        f" buckets add-iam-policy-binding gs://{bucket} --member serviceAccount:EMAIL --role"
        f" {role}; SERVICE_ACCOUNT=EMAIL is an account that is there before",
    )


def _shared(ctx: CheckContext[ClusterSpec], bucket: str) -> Finding:
    """Say that an account that others use too gets no role, as nobody could tell it from theirs."""
    account = ctx.spec.service_account
    if account == "default":
        account = accounts.default(ctx.answers.project_number(ctx.project))
    member, role = f"serviceAccount:{account}", role_of(read_only=ctx.spec.buckets_read_only)
    policy = ctx.answers.find(Service.STORAGE, f"b/{bucket}/iam") or {}
    is_given = any(
        binding.get("role") == role and member in binding.get("members", ())
        for binding in policy.get("bindings", ())
    )
    by_hand = (
        f"; or gcloud storage buckets add-iam-policy-binding gs://{bucket} --member {member} --role"
        f" {role}, which then stays"
    )
    return note(
        Code.NOTE,
        Effect.NOTE_IF_MADE,
        setting="GCS_MOUNT_LIST",
        what=f"no role on gs://{bucket} is given to the VMs' account",
        why="the bucket takes no conditions, by which Destroy would know the role from one that"
        " others rely on; "
        + ("the account has it already" if is_given else "the account has none of this bucket's"),
        fix=f"gcloud storage buckets update gs://{bucket} --uniform-bucket-level-access, or"
        f" SERVICE_ACCOUNT=dedicated{'' if is_given else by_hand}",
    )


def _of_deployment(ctx: CheckContext[ClusterSpec], bucket: str) -> str | None:
    """A folder of a deployment in a bucket; "" if there is none, None if that is not known.

    One request a folder, and one or two more for each of such a name: data may be in thousands.
    """
    left = [("", "")]
    for asked, (above, page) in enumerate(left):
        if asked == _MOST:
            return None
        folders, more = ctx.answers.folders(bucket, above, page)
        for folder in folders:
            if folder.endswith(f"{FOLDER}/"):
                paths = (f"{folder}{name}" for name in (RECORD, STATE))
                if any(ctx.answers.begins_any(bucket, path) for path in paths):
                    return folder
            elif folder.count("/") <= DEEPEST:
                left.append((folder, ""))
        if more:
            left.append((above, more))
    return ""


def _holds_states(bucket: str, folder: str) -> Finding:
    return refuse(
        Code.CONFLICTING_SETTINGS,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} holds the state of a deployment",
        why=f"it is in {folder}; each machine that mounts the bucket could change it, and the next"
        " run of that deployment applies it with the rights of whoever starts it",
        fix="another bucket for the data",
    )


def _missing(bucket: str) -> Finding:
    return refuse(
        Code.RESOURCE_NOT_FOUND,
        setting="GCS_MOUNT_LIST",
        what=f"the bucket gs://{bucket} does not exist",
        why="this tool does not create the buckets that it mounts: their data outlives the cluster",
        fix=f"check its spelling, or create it with: gcloud storage buckets create gs://{bucket}"
        " --uniform-bucket-level-access --public-access-prevention",
    )


def _unseen_bucket(bucket: str, unknown: str, fix: str, why: str) -> Finding:
    return note(
        Code.NOT_CHECKED,
        setting="GCS_MOUNT_LIST",
        what=f"could not check whether the bucket gs://{bucket} {unknown}",
        why=why,
        fix=fix,
    )
