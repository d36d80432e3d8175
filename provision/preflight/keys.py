"""The checks of what others keep secret: the key of Cloud KMS, and the secrets that are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from provision.catalogue import zones
from provision.codes import Code
from provision.google.api import Service
from provision.preflight.check import note, refuse, seen
from provision.preflight.networks import lets
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.google.api import GoogleApiError
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_SETTING: Final = "KMS_KEY"
_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
_USING: Final = frozenset({_ROLE, "roles/cloudkms.cryptoOperator"})


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
