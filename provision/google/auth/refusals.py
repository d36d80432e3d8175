"""Google's words for credentials that it does not take, and what mends each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from provision.errors import CredentialsError

RENEW: Final = "renew them with: gcloud auth application-default login"
"""What mends a person's credentials, on the machine whose gcloud configuration is mounted."""


@dataclass(frozen=True)
class _Refusal:
    """One of the reasons.

    Attributes:
        words: Found in what Google says.
        what: What is wrong, in a line.
        fix: What mends it.
    """

    words: re.Pattern[str]
    what: str
    fix: str


# The first that fits counts. The words are those of the token endpoint, of the APIs' 403 and 400,
# and of google-auth, which puts the error's code before its description.
_REFUSALS: Final = (
    _Refusal(
        re.compile(r"getAccessToken"),
        "The service account of GOOGLE_IMPERSONATE_SERVICE_ACCOUNT may not be impersonated",
        "grant the role Service Account Token Creator (roles/iam.serviceAccountTokenCreator) on"
        " that account to whoever runs this, and enable the API iamcredentials.googleapis.com",
    ),
    _Refusal(
        re.compile(r"Invalid JWT|grant: account not found|invalid_client|disabled_client"),
        "The service account's key is not valid any more, or this machine's clock is wrong",
        "make a new key, or better: use a way without keys"
        " (workload identity federation, a VM's own account)",
    ),
    _Refusal(
        # google-auth writes "Error code" of a token exchange alone, which is federation.
        re.compile(r"^Error code (?:invalid_|unauthorized_)"),
        "The identity pool does not take the token that the federation file leads to",
        "renew that token, and compare its audience, issuer and attributes with the pool's"
        " provider: gcloud iam workload-identity-pools providers describe",
    ),
    _Refusal(
        re.compile(r"^File '.*' was not found|subject[ _]token", re.MULTILINE),
        "The token that the federation file leads to can't be read",
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
        "The quota project of these credentials may not be used by their account",
        "name one that may: gcloud auth application-default set-quota-project PROJECT_ID; it takes"
        " the role Service Usage Consumer (roles/serviceusage.serviceUsageConsumer) there."
        " A login that has expired can look like this too: gcloud auth application-default login",
    ),
    _Refusal(
        re.compile(r"requires a quota project"),
        "These credentials name no quota project",
        "name one: gcloud auth application-default set-quota-project PROJECT_ID",
    ),
    _Refusal(
        # google-auth's answer to a 401 for a token that came without the means to renew it.
        re.compile(r"invalid authentication credentials|necessary fields need to refresh"),
        "The access token has expired, or is none of Google's",
        "give a new one: GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token); it lasts an"
        " hour. For longer runs give credentials that renew themselves, as a mounted gcloud folder",
    ),
    _Refusal(
        re.compile(r"insufficient authentication scopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
        "The scopes of these credentials do not reach to what is asked",
        "use credentials with the scope cloud-platform; a VM gets it by: gcloud compute instances"
        " set-service-account VM --zone=ZONE --scopes=cloud-platform (while it is stopped)",
    ),
)


def explain(message: str) -> CredentialsError | None:
    """The error that a refusal of Google's is; None when it is not about the credentials.

    Args:
        message: Google's words.
    """
    for refusal in _REFUSALS:
        if refusal.words.search(message):
            return CredentialsError(refusal.what, why=message, fix=refusal.fix)
    return None
