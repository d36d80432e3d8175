"""Who is asking: where credentials come from, the proof that they work, and the same for Terraform.

The ways, the first that is there counts:

1. `GOOGLE_OAUTH_ACCESS_TOKEN`: an access token, good for an hour at most.
2. `GOOGLE_APPLICATION_CREDENTIALS`: a file; a key, or a configuration of workload identity
   federation.
3. gcloud's file, as `gcloud auth application-default login` leaves it.
4. The metadata server: Cloud Shell's person, or a VM's service account.

`GOOGLE_IMPERSONATE_SERVICE_ACCOUNT` goes on top of any of them.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from provision.errors import CredentialsError
from provision.google.auth import login, metadata_server, refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.auth.credentials import Credentials

TOKEN: Final = "GOOGLE_OAUTH_ACCESS_TOKEN"  # noqa: S105 - the name of a variable
FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
IMPERSONATE: Final = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
_BACKEND_IMPERSONATE: Final = "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT"
_TERRAFORMS_OWN: Final = frozenset(
    {
        "GOOGLE_CREDENTIALS",
        "GOOGLE_BACKEND_CREDENTIALS",
        "GOOGLE_CLOUD_KEYFILE_JSON",
        "GCLOUD_KEYFILE_JSON",
        _BACKEND_IMPERSONATE,
    }
)
"""What Terraform's provider or backend would prefer to what was checked here."""

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GCLOUD_FILE: Final = "application_default_credentials.json"
_TIMEOUT: Final = 20.0
"""Seconds for one request to a token endpoint."""
_WAYS: Final = (
    "give credentials in one of three ways:\n"
    "1. run: gcloud auth application-default login\n"
    "   and mount them: -v ~/.config/gcloud:/root/.config/gcloud\n"
    "2. set GOOGLE_APPLICATION_CREDENTIALS to the path of a mounted key or federation file\n"
    "3. run in Cloud Shell or on a Google Cloud VM, whose own identity is then used\n"
    "On a terminal (docker run -it) a login by hand is offered as well"
)


@dataclass(frozen=True)
class Source:
    """Where the credentials of a run come from.

    Attributes:
        name: For people.
        token: The access token; "" in the other ways.
        file: The file; None in the other ways. Neither token nor file: the metadata server.
        impersonated: The service account that is acted as; "" for none.
    """

    name: str
    token: str = ""
    file: Path | None = None
    impersonated: str = ""


def source(environ: Mapping[str, str]) -> Source:
    """Which way it is; nothing is read or asked but whether files exist."""
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
    """The environment in which provider and backend use what `credentials` uses, and only that.

    Nothing of it is on a command line, and files stay files: Terraform renews what they are for.
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
    """Find the credentials and prove that they give a token; ask on a terminal if there are none.

    Args:
        environ: The process's environment.
        tell: Takes one sentence that says whose credentials are used.

    Raises:
        CredentialsError: There are none, or Google does not take them.
    """
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
        made = _impersonating(made, found.impersonated)
        whose += f", impersonating {found.impersonated}"
    tell(f"Credentials: {whose}")
    if not found.token or found.impersonated:
        _prove(made, whose)
    return made


def _gcloud_folders(environ: Mapping[str, str]) -> list[Path]:
    """Where gcloud may keep its file; Terraform knows the second only, so both are looked into."""
    named, home = environ.get("CLOUDSDK_CONFIG", ""), environ.get("HOME", "")
    folders = [Path(named)] if named else []
    return [*folders, Path(home, ".config", "gcloud")] if home else folders


def _logged_in(environ: Mapping[str, str]) -> Source:
    """The source that a login by hand has made."""
    if not login.is_possible(environ):
        raise CredentialsError(
            "No Google credentials were found",
            why=f"neither {FILE} nor gcloud's {_GCLOUD_FILE} is there, no metadata server answers,"
            " and nobody can be asked without a terminal",
            fix=_WAYS,
        )
    login.ask(environ)
    found = source(environ)
    if found.file is None:
        raise CredentialsError(
            "The login by hand left no credentials",
            why=f"gcloud's {_GCLOUD_FILE} is not where CLOUDSDK_CONFIG or HOME say",
            fix="set HOME to a folder that can be written to, then run again",
        )
    return found


def _load(found: Source) -> Credentials:
    """The credentials of a source, of which nothing has been proven."""
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
            fix="mount it into the container (-v FILE:FILE:ro) where it is missing there; else"
            f" {_WAYS}",
        ) from error


def _from_document(document: dict[str, Any]) -> Credentials:
    """The credentials that a file's content describes."""
    import google.auth  # noqa: PLC0415 - 0.2 s
    from google.auth import aws, identity_pool  # noqa: PLC0415 - as above

    if document.get("type") == "external_account":
        # google-auth's loader would ask for the pool's project, which nobody wants to know here.
        from_aws = "environment_id" in document.get("credential_source", {})
        kind: Any = aws.Credentials if from_aws else identity_pool.Credentials
        return cast("Credentials", kind.from_info(document, scopes=[_SCOPE]))
    with warnings.catch_warnings():
        # It warns of files from strangers, and of a person's without a quota project: this file is
        # the user's own choice, and the first request says what is missing.
        warnings.simplefilter("ignore")
        made, _project = google.auth.load_credentials_from_dict(document, scopes=[_SCOPE])
    return cast("Credentials", made)


def _impersonating(base: Credentials, account: str) -> Credentials:
    from google.auth import impersonated_credentials  # noqa: PLC0415 - 0.2 s

    return impersonated_credentials.Credentials(
        source_credentials=base, target_principal=account, target_scopes=[_SCOPE]
    )


def _prove(made: Credentials, whose: str) -> None:
    """Get a token.

    Raises:
        CredentialsError: Google gives none, or can't be asked.
    """
    from google.auth.exceptions import GoogleAuthError, TransportError  # noqa: PLC0415 - 0.2 s
    from google.auth.transport.requests import Request  # noqa: PLC0415 - as above

    try:
        made.refresh(functools.partial(Request(), timeout=_TIMEOUT))
    except TransportError as error:
        raise CredentialsError(
            "Google could not be asked for a token",
            why=str(error),
            fix="check the network and proxy settings of this machine, then run again",
        ) from error
    except (GoogleAuthError, ValueError) as error:
        message = _words(error)
        raise refusals.explain(message) or CredentialsError(
            f"Google gives no token for {whose}", why=message, fix=refusals.RENEW
        ) from error


def _words(error: Exception) -> str:
    """What was said of a refusal.

    google-auth puts the body of an answer behind its own sentence: as a document, whose essence is
    in the sentence already, or as text, which alone has Google's reason.
    """
    said = [str(part) for part in error.args if isinstance(part, str)]
    return "\n".join(dict.fromkeys(said)) or str(error)
