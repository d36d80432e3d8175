"""The account that Google itself gives to a machine: a VM's, or Cloud Shell's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from provision.errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS: Final = "169.254.169.254"
"""By number, as the name is not known elsewhere and some resolvers take seconds to say so."""
_ACCOUNT: Final = "/computeMetadata/v1/instance/service-accounts/default/?recursive=true"
_FLAVOR: Final = ("Metadata-Flavor", "Google")
_TRIES: Final = 2
_TIMEOUT: Final = 1.0
"""Seconds; the server is on the machine itself. Elsewhere nothing may answer at all."""
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_SET_ACCOUNT: Final = (
    "stop the VM, then: gcloud compute instances set-service-account VM --zone=ZONE"
    " --service-account=EMAIL --scopes=cloud-platform"
)


@dataclass(frozen=True)
class Account:
    """An account of the metadata server's.

    Attributes:
        email: Whose it is.
    """

    email: str

    @property
    def is_service_account(self) -> bool:
        """Whether it is no person's."""
        return self.email.endswith("gserviceaccount.com")

    @property
    def place(self) -> str:
        """Where we seem to be: only Cloud Shell gives out a person's account."""
        return "this VM" if self.is_service_account else "Cloud Shell"


def account(environ: Mapping[str, str]) -> Account | None:
    """The machine's account; None where there is no metadata server.

    Args:
        environ: GCE_METADATA_HOST moves the server; NO_GCE_CHECK=true says that there is none.

    Raises:
        CredentialsError: There is a metadata server, and its account can't be used.
    """
    if environ.get("NO_GCE_CHECK", "").lower() == "true":
        return None
    answer = _ask(environ.get("GCE_METADATA_HOST") or _ADDRESS)
    if answer is None:
        return None
    status, body = answer
    if status == HTTPStatus.NOT_FOUND:
        raise CredentialsError(
            "This VM has no service account",
            why=f"the metadata server says {status:d}: {body}",
            fix=_SET_ACCOUNT,
        )
    document = _document(body) if status == HTTPStatus.OK else None
    if document is None:
        raise CredentialsError(
            "The metadata server of this machine does not say whose credentials it has",
            why=f"it answers {status:d}: {body[:500]}",
            fix="run again; in Cloud Shell, agree when its window asks to authorize",
        )
    found = Account(str(document["email"]))
    scopes = [str(scope) for scope in document.get("scopes", [])]
    if found.is_service_account and _SCOPE not in scopes:
        raise CredentialsError(
            f"This VM's access to Google's APIs is limited: the scope {_SCOPE} is missing",
            why=f"its service account {found.email} has only: {' '.join(scopes) or 'no scope'}",
            fix=_SET_ACCOUNT,
        )
    return found


def _document(body: str) -> dict[str, Any] | None:
    """What is said of an account; None when it names none."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("email") else None


def _ask(host: str) -> tuple[int, str] | None:
    """Status and body of the answer; None when nobody answers, or not Google's server."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - 0.2 s
    from google.auth.transport.requests import Request  # noqa: PLC0415 - as above

    request = Request()
    for _ in range(_TRIES):
        try:
            answer = request(f"http://{host}{_ACCOUNT}", headers=dict([_FLAVOR]), timeout=_TIMEOUT)
        except TransportError:
            continue
        if answer.headers.get(_FLAVOR[0]) != _FLAVOR[1]:
            return None
        return answer.status, answer.data.decode("utf-8", "replace").strip()
    return None
