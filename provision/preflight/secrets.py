"""The check of the secrets that VMs or pods are to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight.check import Check, CheckNote
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec

_FORBIDDEN: Final = 403


def _secrets(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the secrets exist, as far as these credentials may see them."""
    for path in dict.fromkeys(secret.path for secret in ctx.spec.secrets):
        try:
            if ctx.answers.find(Service.SECRET_MANAGER, path) is None:
                yield Problem(
                    code=Code.RESOURCE_NOT_FOUND,
                    setting="SECRETS",
                    what=f"there is no {path}",
                    why="this tool does not make the secrets that a cluster reads",
                    fix="check its spelling, or make it with: gcloud secrets create"
                    f" {path.rpartition('/')[2]} --project {path.split('/')[1]} --data-file -",
                )
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield CheckNote(
                Problem(
                    code=Code.NOT_CHECKED,
                    setting="SECRETS",
                    what=f"could not check whether {path} exists",
                    why=error.message,
                    fix="make sure that it does, and that the cluster's account may read it",
                )
            )


SECRETS: Final = Check(
    name=OnlineCheck.SECRETS,
    calls=("secretmanager.projects.secrets.get",),
    says="a secret that is to be read does not exist",
    find=_secrets,
    applies=lambda ctx: bool(ctx.spec.secrets),
)
