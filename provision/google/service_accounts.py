"""Whether a service account is there and can act, and what brings one back that is not.

An account that was deleted is not brought back by another one of its address: machines and roles
know it by its number (IAM, "Delete and undelete service accounts"). All that judge an account look
at it here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from provision.catalogue import accounts
from provision.google.api import GoogleApiError
from provision.google.resources import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.google.api import Service


class Standing(enum.Enum):
    """What machines that act as an account can count on."""

    ACTS = enum.auto()
    DISABLED = enum.auto()
    GONE = enum.auto()
    HIDDEN = enum.auto()  # these credentials may not see it, which says nothing of it


@dataclass(frozen=True, kw_only=True)
class Account:
    """What Google says of an account."""

    email: str
    project: str  # whose it is; "-" where its address does not say
    standing: Standing
    number: str = ""  # its own, which no other account ever has; "" where it is not seen

    @property
    def path(self) -> str:
        """Where it is in Google's API."""
        return SERVICE_ACCOUNT.path(project=self.project, email=self.email)

    @property
    def is_lost(self) -> bool:
        """Whether whoever acts as it gets no token."""
        return self.standing in {Standing.DISABLED, Standing.GONE}

    @property
    def fate(self) -> str:
        """What has become of one that is lost."""
        return "is disabled" if self.standing is Standing.DISABLED else "was deleted"

    def back(self, number: str = "") -> str:
        """The commands that bring it back; `number`: that of the one that is missed."""
        if self.standing is Standing.DISABLED:
            return f"gcloud iam service-accounts enable {self.email} --project {self.project}"
        over = self.standing is not Standing.GONE
        return accounts.undelete(self.email, self.project, number, over=over)


def hidden(email: str, project: str) -> Account:
    """One of which nothing is known."""
    return Account(email=email, project=project, standing=Standing.HIDDEN, number="")


def look(
    find: Callable[[Service, str], dict[str, Any] | None], email: str, project: str
) -> Account:
    """Look at the account of an address; `find`: what asks Google for a resource."""
    path = SERVICE_ACCOUNT.path(project=project, email=email)
    number = ""
    try:
        found = find(SERVICE_ACCOUNT.look.service, path)
    except GoogleApiError as error:
        if error.code != HTTPStatus.FORBIDDEN:
            raise
        standing = Standing.HIDDEN
    else:
        standing = Standing.GONE if found is None else Standing.ACTS
        if found is not None:
            number = found.get("uniqueId") or ""
            standing = Standing.DISABLED if found.get("disabled") else standing
    return Account(email=email, project=project, standing=standing, number=number)


def project_of(email: str, project: str, number: str) -> str:
    """Whose an account is that machines of a project act as; "" where its address does not say.

    `number`: that of the project, in which its default account is.
    """
    return project if email == accounts.default(number) else accounts.project_of(email)
