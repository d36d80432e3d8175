"""The credentials: where they come from, a check that they work, and how Terraform gets them.

The first of these sources that is available is used:

1. `GOOGLE_OAUTH_ACCESS_TOKEN`: an access token, valid for an hour at most.
2. `GOOGLE_APPLICATION_CREDENTIALS`: the path of a service account key or of a configuration file
   for workload identity federation.
3. gcloud's file, as written by `gcloud auth application-default login`.
4. The metadata server: the user of Cloud Shell, or a VM's service account.

`GOOGLE_IMPERSONATE_SERVICE_ACCOUNT`, which IMPERSONATE sets, can be combined with each of them.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from provision.codes import Code
from provision.endpoints import IMPERSONATE
from provision.errors import CredentialsError
from provision.google import refusals as google_refusals
from provision.google import sessions
from provision.google.auth import login, metadata_server, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from google.auth.credentials import Credentials

TOKEN: Final = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105 - the name of a variable
FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_BACKEND_IMPERSONATE: Final = "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT"
_ENDPOINT: Final = "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT"
_TERRAFORMS_OWN: Final = frozenset(
    {
        "GOOGLE_CREDENTIALS",
        "GOOGLE_BACKEND_CREDENTIALS",
        "GOOGLE_CLOUD_KEYFILE_JSON",
        "GCLOUD_KEYFILE_JSON",
        _BACKEND_IMPERSONATE,
    }
)
"""Variables that Terraform's provider or backend would prefer to the credentials checked here."""

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GCLOUD_FILE: Final = "application_default_credentials.json"
_TIMEOUT: Final = 20.0
"""Timeout of a request to a token endpoint, in seconds."""
_WAYS: Final = (
    "provide credentials in one of three ways:\n"
    "1. run: gcloud auth application-default login\n"
    "   and mount them: -v ~/.config/gcloud:/root/.config/gcloud\n"
    "2. set GOOGLE_APPLICATION_CREDENTIALS to the path of a mounted key or federation file\n"
    "3. run in Cloud Shell or on a Google Cloud VM, to use its own identity\n"
    "On a terminal (docker run -it) you can also log in interactively"
)


@dataclass(frozen=True)
class Source:
    """Where the credentials of a run come from."""

    name: str  # a description for people
    token: str = ""  # the access token; "" for other sources
    # The file; None for other sources. Without token and file: the metadata server.
    file: Path | None = None
    impersonated: str = ""  # the service account to impersonate; "" for none


def source(environ: Mapping[str, str]) -> Source:
    """The source to use; this only checks which variables are set and which files exist."""
    impersonated = environ.get(IMPERSONATE, "")
    if token := environ.get(TOKEN, ""):
        return Source(f"the access token in {TOKEN}", token=token, impersonated=impersonated)
    if named := environ.get(FILE, ""):
        return Source(f"the file {named} ({FILE})", file=Path(named), impersonated=impersonated)
    for folder in _gcloud_folders(environ):
        if (folder / _GCLOUD_FILE).exists():
            found = folder / _GCLOUD_FILE
            return Source(f"gcloud's file {found}", file=found, impersonated=impersonated)
    return Source("the metadata server", impersonated=impersonated)


def for_terraform(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes the provider and the backend use the same source as `credentials`.

    No secret is put on a command line, and files are passed by path, so that Terraform can renew
    the tokens.
    """
    found = source(environ)
    kept = {name: value for name, value in environ.items() if name not in _TERRAFORMS_OWN}
    if found.file is not None:
        kept[FILE] = str(found.file)
    if found.impersonated:
        kept[_BACKEND_IMPERSONATE] = found.impersonated
    return kept


def credentials(
    environ: Mapping[str, str] = os.environ, tell: Callable[[str], None] = lambda _: None
) -> Credentials:
    """Find the credentials and check that they give a token; on a terminal, offer a login."""
    found = source(environ)
    whose = found.name
    if not found.token and found.file is None:
        machine = metadata_server.account(environ)
        if machine is not None:
            whose = f"{machine.place}, as {machine.email}"
        else:
            found = _logged_in(environ)
            whose = found.name
    made = _load(found)
    if found.impersonated:
        made = _impersonating(made, found.impersonated, environ.get(_ENDPOINT, ""))
        whose += f", impersonating {found.impersonated}"
    tell(f"Credentials: {whose}")
    if not found.token or found.impersonated:
        _prove(made, whose)
    return made


def _gcloud_folders(environ: Mapping[str, str]) -> list[Path]:
    """The folders where gcloud may keep its file. Terraform itself only knows the second one."""
    named, home = environ.get("CLOUDSDK_CONFIG", ""), environ.get("HOME", "")
    folders = [Path(named)] if named else []
    return [*folders, Path(home, ".config", "gcloud")] if home else folders


def _logged_in(environ: Mapping[str, str]) -> Source:
    """Log in interactively; returns the source that this created."""
    if not login.is_possible(environ):
        raise CredentialsError(
            "No Google credentials were found",
            code=Code.NO_CREDENTIALS,
            why=f"{FILE} is not set, gcloud's {_GCLOUD_FILE} does not exist, no metadata server"
            " answers, and without a terminal nobody can log in",
            fix=_WAYS,
        )
    login.ask(environ)
    found = source(environ)
    if found.file is None:
        raise CredentialsError(
            "The interactive login left no credentials",
            code=Code.NO_CREDENTIALS,
            why=f"gcloud's {_GCLOUD_FILE} is not in the folder of CLOUDSDK_CONFIG or HOME",
            fix="set HOME to a writable folder, then run again",
        )
    return found


def _load(found: Source) -> Credentials:
    """Load the credentials of a source, without checking them."""
    # Imported here: 0.2 s that a run without the cloud need not wait for.
    import google.oauth2.credentials  # noqa: PLC0415
    from google.auth import compute_engine  # noqa: PLC0415
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

    if found.token:
        return google.oauth2.credentials.Credentials(found.token)
    if found.file is None:
        return compute_engine.Credentials(scopes=[_SCOPE])
    try:
        return _from_document(json.loads(found.file.read_text(encoding="utf-8")))
    except (GoogleAuthError, OSError, ValueError, KeyError, AttributeError) as error:
        raise CredentialsError(
            f"{found.name[:1].upper()}{found.name[1:]} can't be used as credentials",
            why=str(error),
            fix="mount it into the container (-v FILE:FILE:ro) if it is missing there; otherwise"
            f" {_WAYS}",
        ) from error


def _from_document(document: dict[str, Any]) -> Credentials:
    """The credentials that a file's content describes."""
    import google.auth  # noqa: PLC0415 - 0.2 s
    from google.auth import aws, identity_pool  # noqa: PLC0415 - as above

    if document.get("type") == "external_account":
        # google-auth's loader would look up the pool's project, which is not needed here.
        from_aws = "environment_id" in document.get("credential_source", {})
        kind: Any = aws.Credentials if from_aws else identity_pool.Credentials
        return cast("Credentials", kind.from_info(document, scopes=[_SCOPE]))
    with warnings.catch_warnings():
        # It warns about untrusted files and about a missing quota project: this file is the user's
        # own choice, and the first request reports what is missing.
        warnings.simplefilter("ignore")
        made, _project = google.auth.load_credentials_from_dict(document, scopes=[_SCOPE])
    return cast("Credentials", made)


def hand_over(made: Credentials, environ: MutableMapping[str, str]) -> None:
    """Let Terraform act as the account that was impersonated with an access token.

    It could do that itself, but no longer than the token lasts: so it gets the account's own, which
    lasts an hour from now. From what can be renewed, Terraform gets that, and renews it.
    """
    found = source(environ)
    if found.token and found.impersonated:
        environ[TOKEN] = str(made.token)
        del environ[IMPERSONATE]


def _impersonating(base: Credentials, account: str, endpoint: str) -> Credentials:
    from google.auth import impersonated_credentials  # noqa: PLC0415 - 0.2 s

    path = f"projects/-/serviceAccounts/{account}:generateAccessToken"
    return impersonated_credentials.Credentials(
        source_credentials=base,
        target_principal=account,
        target_scopes=[_SCOPE],
        iam_endpoint_override=endpoint + path if endpoint else None,
    )


def _prove(made: Credentials, whose: str) -> None:
    """Get a token."""
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - 0.2 s
    from google.auth.transport.requests import Request  # noqa: PLC0415 - as above

    try:
        made.refresh(functools.partial(Request(sessions.anonymous()), timeout=_TIMEOUT))
    except (GoogleAuthError, ValueError) as error:
        message = _words(error)
        if isinstance(error, GoogleAuthError) and refusals.is_passing(error):
            is_untrusted = google_refusals.is_untrusted(message)
            raise CredentialsError(
                "Google could not be reached to get a token",
                code=Code.UNTRUSTED if is_untrusted else Code.UNREACHABLE,
                why=message,
                fix=google_refusals.TRUST
                if is_untrusted
                else "check the network and proxy settings of this machine, then run again",
            ) from error
        raise refusals.explain(message) or CredentialsError(
            f"Google gives no token for {whose}", why=message, fix=refusals.RENEW
        ) from error


def _words(error: Exception) -> str:
    """The message of an error of google-auth.

    It puts the response's body after its own sentence: as a dict, which adds nothing to the
    sentence, or as text, which has Google's reason.
    """
    said = [str(part) for part in error.args if isinstance(part, str)]
    return "\n".join(dict.fromkeys(said)) or str(error)
