"""Google's messages about credentials that it does not accept, and how to fix each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.errors import CredentialsError

if TYPE_CHECKING:
    from google.auth.exceptions import GoogleAuthError

RENEW: Final = "renew them with: gcloud auth application-default login"
"""How to renew a user's credentials, on the machine whose gcloud configuration is mounted."""


@dataclass(frozen=True)
class _Refusal:
    """One reason why Google does not accept credentials."""

    words: re.Pattern[str]  # a pattern that matches Google's message
    what: str  # what is wrong, in one line
    fix: str


# The first match counts. The messages are those of the token endpoint, of the APIs' 403 and 400
# responses, and of google-auth, which puts the error's code before its description.
_REFUSALS: Final = (
    _Refusal(
        re.compile(r"getAccessToken"),
        "The service account of IMPERSONATE may not be impersonated",
        "grant the role Service Account Token Creator (roles/iam.serviceAccountTokenCreator) on"
        " that account to whoever runs this, and enable the API iamcredentials.googleapis.com",
    ),
    _Refusal(
        re.compile(r"Invalid JWT|grant: account not found|invalid_client|disabled_client"),
        "The service account's key is no longer valid, or this machine's clock is wrong",
        "create a new key, or better, use credentials without a key"
        " (workload identity federation, a VM's own account)",
    ),
    _Refusal(
        # google-auth writes "Error code" only for a token exchange, which means federation.
        re.compile(r"^Error code (?:invalid_|unauthorized_)"),
        "The identity pool does not accept the token that the federation file refers to",
        "renew that token, and compare its audience, issuer and attributes with the pool's"
        " provider: gcloud iam workload-identity-pools providers describe",
    ),
    _Refusal(
        re.compile(r"^File '.*' was not found|subject[ _]token", re.MULTILINE),
        "The token that the federation file refers to can't be read",
        "mount the file that its credential_source names too (-v FILE:FILE:ro), or make its URL"
        " reachable from the container (--network=host)",
    ),
    _Refusal(
        re.compile(r"invalid_grant|invalid_rapt|[Rr]eauth"),
        "The login of these credentials has expired or was revoked",
        RENEW,
    ),
    _Refusal(
        re.compile(r"serviceusage\.services\.use|permission to use project"),
        "The account of these credentials may not use their quota project",
        "set another one: gcloud auth application-default set-quota-project PROJECT_ID; the account"
        " needs the role Service Usage Consumer (roles/serviceusage.serviceUsageConsumer) there."
        " An expired login can look like this too: gcloud auth application-default login",
    ),
    _Refusal(
        re.compile(r"requires a quota project"),
        "These credentials have no quota project",
        "set one: gcloud auth application-default set-quota-project PROJECT_ID",
    ),
    _Refusal(
        # google-auth's message after a 401 for a token that it can't renew.
        re.compile(r"invalid authentication credentials|necessary fields need to refresh"),
        "The access token has expired, or is not a Google access token",
        "set a new one: GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token); it is valid"
        " for an hour. For longer runs use credentials that renew themselves, such as a mounted"
        " gcloud folder",
    ),
    _Refusal(
        re.compile(r"insufficient authentication scopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
        "The scopes of these credentials are not sufficient",
        "use credentials with the scope cloud-platform; for a VM, stop it and run: gcloud compute"
        " instances set-service-account VM --zone=ZONE --scopes=cloud-platform",
    ),
)


def explain(message: str) -> CredentialsError | None:
    """The error for a refusal; None if it is not about the credentials."""
    for refusal in _REFUSALS:
        if refusal.words.search(message):
            return CredentialsError(refusal.what, why=message, fix=refusal.fix)
    return None


def is_passing(error: GoogleAuthError) -> bool:
    """Whether there is no token for now: nobody refuses one, but its source does not answer."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - 0.2 s

    return isinstance(error, TransportError) or error.retryable
