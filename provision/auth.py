"""Who is asking: Google's Application Default Credentials, and what to do without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.errors import CredentialsError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_WAYS = (
    "give credentials in one of three ways:\n"
    "1. run: gcloud auth application-default login\n"
    "   and mount them: -v ~/.config/gcloud:/root/.config/gcloud\n"
    "2. set GOOGLE_APPLICATION_CREDENTIALS to the path of a mounted key or federation file\n"
    "3. run in Cloud Shell or on a Google Cloud VM, whose own identity is then used"
)


def credentials() -> Credentials:
    """Find the credentials of the environment and prove that they give a token.

    Terraform's provider and backend look in the same places in the same order.

    Raises:
        CredentialsError: There are none, or Google no longer takes them.
    """
    # Imported here: 0.2 s that a run without the cloud need not wait for.
    import google.auth  # noqa: PLC0415
    import google.auth.exceptions as failures  # noqa: PLC0415
    import google.auth.transport.requests  # noqa: PLC0415

    try:
        found, _project = google.auth.default(scopes=[_SCOPE])
    except failures.DefaultCredentialsError as error:
        raise CredentialsError(
            "No Google credentials were found", why=str(error), fix=_WAYS
        ) from error
    try:
        found.refresh(google.auth.transport.requests.Request())
    except failures.RefreshError as error:
        raise CredentialsError(
            "Google no longer accepts the credentials that were found",
            why=str(error.args[0] if error.args else error),
            fix="renew them with: gcloud auth application-default login",
        ) from error
    except failures.TransportError as error:
        raise CredentialsError(
            "Google could not be asked for a token",
            why=str(error),
            fix="check the network and proxy settings of this machine, then run again",
        ) from error
    return found
