"""The account that the metadata server provides: a VM's service account, or Cloud Shell's user."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.documents import json_object
from provision.errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS: Final = "169.254.169.254"
"""An IP address: outside Google Cloud some resolvers take seconds to reject the host name."""
_ACCOUNT: Final = "/computeMetadata/v1/instance/service-accounts/default/?recursive=true"
_FLAVOR: Final = ("Metadata-Flavor", "Google")
_TRIES: Final = 2
_TIMEOUT: Final = 1.0
"""Seconds; the server is on the machine itself. Outside Google Cloud nothing may answer at all."""
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_SET_ACCOUNT: Final = (
    "stop the VM, then: gcloud compute instances set-service-account VM --zone=ZONE"
    " --service-account=EMAIL --scopes=cloud-platform"
)


@dataclass(frozen=True)
class Account:
    """An account that the metadata server provides."""

    email: str

    @property
    def is_service_account(self) -> bool:
        """Whether it is a service account, not a person's."""
        return self.email.endswith("gserviceaccount.com")

    @property
    def place(self) -> str:
        """Where this program runs: only Cloud Shell provides a person's account."""
        return "this VM" if self.is_service_account else "Cloud Shell"


def account(environ: Mapping[str, str]) -> Account | None:
    """The machine's account; None if there is no metadata server.

    `environ`: GCE_METADATA_HOST sets another server; NO_GCE_CHECK=true means that there is none.
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
            code=Code.NO_CREDENTIALS,
            why=f"the metadata server answers {status:d}: {body}",
            fix=_SET_ACCOUNT,
        )
    document = _document(body) if status == HTTPStatus.OK else None
    if document is None:
        raise CredentialsError(
            "The metadata server of this machine does not name an account",
            code=Code.NO_CREDENTIALS,
            why=f"it answers {status:d}: {body[:500]}",
            fix='run again; in Cloud Shell, click "Authorize" when it asks',
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
    """The account's document; None if it has no email address."""
    try:
        found = json_object.read(body)
    except ValueError:
        return None
    return found if found.get("email") else None


def _ask(host: str) -> tuple[int, str] | None:
    """Status and body of the response; None if there is none, or it is not from Google's server."""
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
