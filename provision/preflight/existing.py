"""A network of others, as the parts of its check see it: what may not be seen is not missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.preflight.check import CheckContext
    from provision.spec.cluster import ClusterSpec
    from provision.spec.networks import Subnetwork

_FORBIDDEN: Final = 403
USER: Final = "roles/compute.networkUser"
"""The least of Google's roles with which somebody uses a subnetwork."""


@dataclass(frozen=True)
class Case:
    """What all parts of the check of one subnetwork need."""

    ctx: CheckContext[ClusterSpec]  # what every check gets
    it: Subnetwork
    setting: str = "SUBNETWORK"

    @property
    def is_abroad(self) -> bool:
        """Whether it is in a host project."""
        return self.it.project != self.ctx.project

    @property
    def where(self) -> str:
        """The arguments with which gcloud finds the subnetwork."""
        return f"{self.it.name} --project {self.it.project} --region {self.it.region}"

    @property
    def unknown_range(self) -> str:
        """What to write where its range may not be seen."""
        return f"<RANGE OF {self.it.name}>"

    def granting(self, member: str) -> str:
        """The command that lets somebody use the subnetwork."""
        return (
            f"ask an administrator of {self.it.project} to run:\ngcloud compute networks subnets"
            f" add-iam-policy-binding {self.where} --member {member} --role {USER}"
        )


def seen(ask: Callable[[], Any]) -> tuple[Any, GoogleApiError | None]:
    """An answer; None with the refusal where these credentials may not have it."""
    try:
        return ask(), None
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None, error


def unseen(case: Case, what: str, error: GoogleApiError, project: str = "") -> CheckNote:
    """The note that a part of the check could not be made.

    `project`: whose administrator lets one look; "" for that of the subnetwork's project.
    """
    return CheckNote(
        Problem(
            code=Code.NOT_CHECKED,
            setting=case.setting,
            what=f"could not look at {what}",
            why=error.message,
            fix=f"ask an administrator of {project or case.it.project} for the role Compute Network"
            " Viewer (roles/compute.networkViewer) there, to have it checked",
        )
    )
