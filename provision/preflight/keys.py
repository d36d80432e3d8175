"""The check of the key of Cloud KMS: that it fits, can encrypt, and that Google may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import zones
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import Check, CheckNote
from provision.preflight.existing import seen
from provision.preflight.existing_rights import lets
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_SETTING: Final = "KMS_KEY"
_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_USING: Final = frozenset({_ROLE, "roles/cloudkms.cryptoOperator"})


def _key(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check the key, as far as these credentials may see it."""
    path = ctx.spec.kms_key or ""  # never empty, or there is nothing to check
    why = zones.why_key_is_elsewhere(path, ctx.spec.region, strict=_is_strict(ctx))
    if why:
        yield Problem(
            code=Code.INCOMPATIBLE_REQUEST,
            setting=_SETTING,
            what=f"{path.rpartition('/')[2]} is in {path.split('/')[3]}",
            why=why,
            fix=f"a key in {ctx.spec.region}",
        )
    key, refused = seen(lambda: ctx.answers.find(Service.KMS, path))
    if refused is not None:
        yield _unseen(f"whether {path} can encrypt", refused)
    elif key is None:
        yield Problem(
            code=Code.RESOURCE_NOT_FOUND,
            setting=_SETTING,
            what=f"there is no {path}",
            why="this tool makes no keys",
            fix="check its spelling, or ask whoever keeps your keys to make it",
        )
        return
    elif (told := _useless(path, key)) is not None:
        yield told
    yield from _grants(ctx, path)


def _useless(path: str, key: dict[str, Any]) -> Problem | None:
    """Why a key can't encrypt, if so."""
    purpose, state = key.get("purpose"), (key.get("primary") or {}).get("state", "missing")
    if (purpose, state) == ("ENCRYPT_DECRYPT", "ENABLED"):
        return None
    is_other = purpose != "ENCRYPT_DECRYPT"
    return Problem(
        code=Code.INCOMPATIBLE_REQUEST,
        setting=_SETTING,
        what=f"{path.rpartition('/')[2]} can't encrypt disks",
        why=f"its purpose is {purpose}" if is_other else f"its primary version is {state}",
        fix="name a key for symmetric encryption" if is_other else "enable its primary version",
    )


def _is_strict(ctx: CheckContext[ClusterSpec]) -> bool:
    """Whether more than disks is encrypted, for which a key of several regions will not do."""
    return bool(ctx.spec.has_control_plane or ctx.spec.shares or ctx.makes_bucket)


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
    users = "; ".join(f"{agent} encrypts {what}" for agent, what in lacking.items())
    commands = [
        f"gcloud kms keys add-iam-policy-binding {path} --member serviceAccount:{agent}"
        f" --role {_ROLE}"
        for agent in lacking
    ]
    granting = "\n".join([f"ask whoever keeps the keys of {project} to run:", *commands])
    if refused is not None:
        yield _unseen("whether Google's service agents may use the key", refused, granting)
        return
    yield Problem(
        code=Code.PERMISSION_MISSING,
        setting=_SETTING,
        what=f"Google's service agents may not use {path.rpartition('/')[2]}",
        why=users,
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


def _unseen(what: str, error: GoogleApiError, otherwise: str = "") -> CheckNote:
    return CheckNote(
        Problem(
            code=Code.NOT_CHECKED,
            setting=_SETTING,
            what=f"could not see {what}",
            why=error.message,
            fix=f"if not, {otherwise}" if otherwise else "",
        )
    )


KMS_KEY: Final = Check(
    name=OnlineCheck.KMS_KEY,
    calls=(
        "cloudkms.projects.locations.keyRings.cryptoKeys.get",
        "cloudkms.projects.locations.keyRings.cryptoKeys.getIamPolicy",
        "cloudkms.projects.locations.keyRings.getIamPolicy",
        "cloudresourcemanager.projects.getIamPolicy",
    ),
    says="the key does not exist, can't encrypt, is in another place, or Google's service agents"
    " may not use it; the fix has the commands for whoever keeps the keys. What these credentials"
    " may not see is a note",
    find=_key,
    applies=lambda ctx: ctx.spec.kms_key is not None,
    of_zone=True,
)
