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
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from provision import endpoints, words
from provision.codes import Code
from provision.documents import json_object
from provision.endpoints import IMPERSONATE
from provision.errors import CredentialsError, Problem
from provision.google import refusals, sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from google.auth.credentials import Credentials
    from google.auth.exceptions import GoogleAuthError

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
_TIMEOUT: Final = 20.0  # timeout of a request to a token endpoint, in seconds
_WAYS: Final = (
    "provide credentials, in one of these ways:\n"
    "1. run: gcloud auth application-default login\n"
    "   (a container without its wrapper needs: -v ~/.config/gcloud:/root/.config/gcloud)\n"
    "2. set GOOGLE_APPLICATION_CREDENTIALS to the path of a key or federation file\n"
    "   (which a container needs mounted, too)\n"
    "3. run in Cloud Shell or on a Google Cloud VM, to use its own identity\n"
    "On a terminal (docker run -it), with gcloud, you can also log in interactively"
)


@dataclass(frozen=True)
class Source:
    """Where the credentials of a run come from."""

    name: str  # a description for people
    token: str = ""  # the access token; "" for other sources
    ends: bool = False  # within an hour, without being renewed
    # The file; None for other sources. Without token and file: the metadata server.
    file: Path | None = None
    impersonated: str = ""  # the service account to impersonate; "" for none


def source(environ: Mapping[str, str]) -> Source:
    """The source to use; this only checks which variables are set and which files exist."""
    impersonated = environ.get(IMPERSONATE, "")
    if token := environ.get(TOKEN, ""):
        # Where Google is simulated nobody has given one, and that one never ends.
        is_own = endpoints.is_rehearsal(environ)
        name = "the rehearsal's own, none of yours" if is_own else f"the access token in {TOKEN}"
        return Source(name, token=token, ends=not is_own, impersonated=impersonated)
    if named := environ.get(FILE, ""):
        return Source(f"the file {named} ({FILE})", file=Path(named), impersonated=impersonated)
    for folder in _gcloud_folders(environ):
        if (folder / _GCLOUD_FILE).exists():
            found = folder / _GCLOUD_FILE
            return Source(f"gcloud's file {found}", file=found, impersonated=impersonated)
    return Source("the metadata server", impersonated=impersonated)


_TOKEN_LASTS: Final = 3600
_START_UP: Final = 900  # seconds that a token lasts at most, and that machines take to start up


def outlived(environ: Mapping[str, str], wait: int) -> Problem | None:
    """A note where these credentials may end before a wait of so many seconds does."""
    if not source(environ).ends or wait + _START_UP <= _TOKEN_LASTS:
        return None
    return Problem(
        code=Code.ENDS_SOON,
        setting="CAPACITY_TIMEOUT",
        what=f"The token in {TOKEN} may end before this wait of {words.duration(float(wait))} does",
        why="it is valid for an hour at most, and cannot be renewed; a run whose token has ended"
        " keeps everything, and ends with exit code 3",
        fix="use credentials that renew themselves: gcloud auth application-default login",
    )


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
    environ: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] = lambda _: None,
    *,
    offers_login: bool = True,
) -> Credentials:
    """Find the credentials and check that they give a token; on a terminal, offer a login."""
    found = source(environ)
    whose = found.name
    if not found.token and found.file is None:
        machine = _machine(environ)
        if machine is not None:
            whose = f"{machine.place}, as {machine.email}"
        else:
            found = _logged_in(environ, offers_login=offers_login)
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


def _logged_in(environ: Mapping[str, str], *, offers_login: bool) -> Source:
    """Log in interactively; returns the source that this created."""
    if not (offers_login and _has_terminal() and _gcloud(environ)):
        raise CredentialsError(
            "No Google credentials were found",
            code=Code.NO_CREDENTIALS,
            why=f"{FILE} is not set, gcloud's {_GCLOUD_FILE} does not exist, no metadata server"
            " answers, and without a terminal nobody can log in",
            fix=_WAYS,
        )
    _log_in(environ)
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
            fix=f"mount it (-v FILE:FILE:ro) if it is missing in a container; otherwise {_WAYS}",
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
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - 0.2 s
    from google.auth.transport.requests import Request  # noqa: PLC0415 - as above

    try:
        made.refresh(functools.partial(Request(sessions.anonymous()), timeout=_TIMEOUT))
    except (GoogleAuthError, ValueError) as error:
        message = _words(error)
        if isinstance(error, GoogleAuthError) and is_passing(error):
            is_untrusted = refusals.is_untrusted(message)
            raise CredentialsError(
                "Google could not be reached to get a token",
                code=Code.UNTRUSTED if is_untrusted else Code.UNREACHABLE,
                why=message,
                fix=refusals.TRUST
                if is_untrusted
                else "check the network and proxy settings of this machine, then run again",
            ) from error
        raise explain(message) or CredentialsError(
            f"Google gives no token for {whose}", why=message, fix=RENEW
        ) from error


def _words(error: Exception) -> str:
    """The message of an error of google-auth.

    It puts the response's body after its own sentence: as a dict, which adds nothing to the
    sentence, or as text, which has Google's reason.
    """
    said = [str(part) for part in error.args if isinstance(part, str)]
    return "\n".join(dict.fromkeys(said)) or str(error)


_LOGIN: Final = ("auth", "application-default", "login", "--no-launch-browser")


def _log_in(environ: Mapping[str, str]) -> None:
    """Run gcloud's login, which keeps the credentials where google-auth and Terraform find them."""
    # stdout is for results, so gcloud's dialog goes to stderr, like progress messages.
    done = subprocess.run(  # noqa: S603 - gcloud of PATH with fixed arguments
        [_gcloud(environ) or "gcloud", *_LOGIN], env=dict(environ), stdout=sys.stderr, check=False
    )
    if done.returncode != 0:
        raise CredentialsError(
            "The login was not completed",
            code=Code.NO_CREDENTIALS,
            why=f"gcloud ended with exit code {done.returncode}",
            fix="run again, open the link, and paste the code that it shows",
        )


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _gcloud(environ: Mapping[str, str]) -> str | None:
    return shutil.which("gcloud", path=environ.get("PATH", ""))


_ADDRESS: Final = "169.254.169.254"
"""An IP address: outside Google Cloud some resolvers take seconds to reject the host name."""
_ACCOUNT: Final = "/computeMetadata/v1/instance/service-accounts/default/?recursive=true"
_FLAVOR: Final = ("Metadata-Flavor", "Google")
_TRIES: Final = 2
_MACHINE_TIMEOUT: Final = 1.0
"""Seconds; the server is on the machine itself. Outside Google Cloud nothing may answer at all."""
_SET_ACCOUNT: Final = (
    "stop the VM, then: gcloud compute instances set-service-account VM --zone=ZONE"
    " --service-account=EMAIL --scopes=cloud-platform"
)


@dataclass(frozen=True)
class _Machine:
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


def _machine(environ: Mapping[str, str]) -> _Machine | None:
    """The machine's account; None if there is no metadata server.

    `environ`: GCE_METADATA_HOST sets another server; NO_GCE_CHECK=true means that there is none.
    """
    if environ.get("NO_GCE_CHECK", "").lower() == "true":
        return None
    answer = _ask_machine(environ.get("GCE_METADATA_HOST") or _ADDRESS)
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
    found = _Machine(str(document["email"]))
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


def _ask_machine(host: str) -> tuple[int, str] | None:
    """Status and body of the response; None if there is none, or it is not from Google's server."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - 0.2 s
    from google.auth.transport.requests import Request  # noqa: PLC0415 - as above

    request = Request()
    for _ in range(_TRIES):
        try:
            answer = request(
                f"http://{host}{_ACCOUNT}", headers=dict([_FLAVOR]), timeout=_MACHINE_TIMEOUT
            )
        except TransportError:
            continue
        if answer.headers.get(_FLAVOR[0]) != _FLAVOR[1]:
            return None
        return answer.status, answer.data.decode("utf-8", "replace").strip()
    return None


RENEW: Final = "renew them with: gcloud auth application-default login"
"""How to renew a user's credentials, on the machine whose gcloud configuration is mounted."""


@dataclass(frozen=True)
class _Refusal:
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
        "the file or URL that its credential_source names must be reachable; from a container, by"
        " -v FILE:FILE:ro or --network=host",
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
        "type `export GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token)` for a new one,"
        " which is valid for an hour. Those of `gcloud auth application-default login` renew"
        " themselves",
    ),
    _Refusal(
        re.compile(r"insufficient authentication scopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
        "The scopes of these credentials are not sufficient",
        "use credentials with the scope cloud-platform; for a VM, stop it and run: gcloud compute"
        " instances set-service-account VM --zone=ZONE --scopes=cloud-platform",
    ),
)

_UNRENEWABLE: Final = "necessary fields need to refresh"
"""What google-auth says, of its own fields, when Google answers 401 to a bare token."""
_NOT_RENEWED: Final = "Google does not take it, and there is nothing to renew it with"


def explain(message: str) -> CredentialsError | None:
    """The error for a refusal; None if it is not about the credentials."""
    for refusal in _REFUSALS:
        if refusal.words.search(message):
            why = _NOT_RENEWED if _UNRENEWABLE in message else message
            return CredentialsError(refusal.what, why=why, fix=refusal.fix)
    return None


def is_passing(error: GoogleAuthError) -> bool:
    """Whether there is no token for now: nobody refuses one, but its source does not answer."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - 0.2 s

    return isinstance(error, TransportError) or error.retryable
