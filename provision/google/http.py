"""Sending requests to Google's APIs: endpoints, retries, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from provision import __version__
from provision.codes import Code
from provision.documents import json_object
from provision.endpoints import Service
from provision.errors import CheckError, CredentialsError, Problem
from provision.google import auth, refusals, sessions
from provision.time import deadline
from provision.time.deadline import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.auth.credentials import Credentials
    from google.auth.exceptions import GoogleAuthError

    from provision.time.stages import Progress

_REQUEST_TIMEOUT = 60.0
_UNAUTHORIZED = 401
_AT_ONCE = 16  # connections that are kept open, for concurrent requests


class GoogleApiError(CheckError):
    """Google refused a request, or did not serve it in as many tries as there are."""

    def __init__(self, code: int, message: str, url: str) -> None:
        is_outage = deadline.is_transient(code, "", message)
        super().__init__(
            f"Google {'did not serve' if is_outage else 'refused'} a request ({code})",
            why=f"{message}\n{url}",
            fix=refusals.remedy(message) or (refusals.AGAIN if is_outage else ""),
            code=refusals.code_in(message, Code.UNREACHABLE if is_outage else Code.GOOGLE_REFUSED),
        )
        self.code = code
        self.message = message
        self.is_outage = is_outage

    def code_or(self, otherwise: Code) -> Code:
        """The code of its problem; another one if Google's words say nothing that is known."""
        known = self.problems[0].code or otherwise
        return otherwise if known is Code.GOOGLE_REFUSED else known


class UnreachableError(TransientError):
    """No answer came: the trouble is between this machine and Google."""


class UntrustedError(Exception):
    """Somebody else answered, with a certificate that is not trusted: no retry changes that."""


class NoAnswerError(GoogleApiError):
    """Google could not be reached."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(503, message, url)
        host = urlsplit(url).hostname
        if refusals.is_untrusted(message):
            what, code = f"What answers for {host} is not trusted", Code.UNTRUSTED
            self.problems = (Problem(what=what, why=message, fix=refusals.TRUST, code=code),)
            return
        self.problems = (
            Problem(
                what=f"{host} could not be reached, {deadline.TRIES} times in a row",
                why=message,
                fix="check this machine's network, DNS and proxy (HTTPS_PROXY), then run the same"
                " action again; if it keeps failing, see https://status.cloud.google.com",
                code=Code.UNREACHABLE,
            ),
        )


class Rest:
    """Sends requests, and retries them after transient errors. It is safe for several threads."""

    def __init__(
        self, credentials: Credentials, environ: Mapping[str, str], progress: Progress
    ) -> None:
        from requests.adapters import HTTPAdapter  # noqa: PLC0415 - 0.1 s

        self._session = sessions.authorized(credentials, environ)
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=_AT_ONCE))
        # Google compresses responses only if the user agent says "gzip" too; without that, VMs'
        # metadata would be half of each list.
        self._session.headers["User-Agent"] = f"aiinfra-cluster/{__version__} (gzip)"
        self._environ = environ
        self._progress = progress

    def token(self, url: str | None) -> str:
        """A valid access token, for a request to this URL that is not sent by this class.

        Raises:
            ClusterError: The URL is not Google's.
            UnreachableError: Where tokens come from does not answer.
        """
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - with the transport
        from google.auth.transport.requests import Request  # noqa: PLC0415 - with it

        sessions.require_trusted(url, self._environ)
        credentials = self._session.credentials
        if not credentials.valid:
            try:
                credentials.refresh(Request(sessions.anonymous()))
            except GoogleAuthError as error:
                raise _without_token(error) from error
        return str(credentials.token)

    def pages(
        self,
        method: str,
        path: str,
        key: str,
        query: dict[str, str],
        service: Service = Service.COMPUTE,
    ) -> Iterator[dict[str, Any]]:
        """The entries of a list, from all pages; for an aggregated list, one entry per scope."""
        token = ""
        while True:
            page = self.call(method, service, path, query | {"pageToken": token})
            entries = page.get(key, [])
            listed = list(entries.values()) if isinstance(entries, dict) else entries
            if not isinstance(listed, list) or not all(isinstance(it, dict) for it in listed):
                raise GoogleApiError(503, f"the answer's {key} are no list of objects", path)
            yield from listed
            before, token = token, str(page.get("nextPageToken") or "")
            if not token:
                return
            if token == before:
                raise GoogleApiError(503, "the answer's next page is the page itself", path)

    def get(self, service: Service, path: str) -> dict[str, Any]:
        """A resource by its path; it is an error if it does not exist."""
        return self.call("GET", service, path, {})

    def call(
        self,
        method: str,
        service: Service,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request that is safe to retry: a read, a deletion, or a change with an etag.

        Raises:
            GoogleApiError: Google refused the request, or all retries failed.
        """
        url = service.url(self._environ) + _quoted(service, path)
        again = deadline.policy(self._progress.clock, self._progress.tell)
        try:
            return again(self._once, method, url, query, body)
        except (UnreachableError, UntrustedError) as error:
            raise NoAnswerError(str(error), url) from error
        except TransientError as error:
            raise GoogleApiError(503, f"{error}; tried {deadline.TRIES} times", url) from error

    def _once(
        self, method: str, url: str, query: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        import requests  # noqa: PLC0415 - with google-auth's transport
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - as above

        try:
            answer = self._session.request(
                method,
                url,
                params={name: value for name, value in query.items() if value},
                json=body,
                timeout=_REQUEST_TIMEOUT,
            )
        except GoogleAuthError as error:
            raise _without_token(error) from error
        except requests.RequestException as error:
            raise _no_answer(error) from error
        if not answer.ok:
            raise _failure(answer, url)
        return _document(answer)


def _quoted(service: Service, path: str) -> str:
    """A path as it stands in a URL, where no name ends it or leads out of it."""
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise GoogleApiError(404, "nothing was asked: a part of this path is no name", path)
    # Quotas have a slash in their names, which come from the catalogue alone: it is quoted there.
    own = "%" if service is Service.QUOTAS else ""
    return quote(path, safe=f"/:@!$&'()*+,;=~{own}")


def _document(answer: Any) -> dict[str, Any]:
    try:
        return json_object.read(answer.content)
    except ValueError as error:
        raise TransientError(
            f"{answer.status_code} with a response that is not as Google's: {error}"
        ) from error


def _failure(answer: Any, url: str) -> Exception:
    try:
        error = json_object.read(answer.content)["error"]
        message = str(error["message"])
        reason = str((error.get("errors") or [{}])[0].get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        message, reason = str(answer.text[:500]), ""
    code = int(answer.status_code)
    if deadline.is_transient(code, reason, message):
        return TransientError(f"{code} {message}")
    if code == _UNAUTHORIZED:
        return _unauthorized(message)
    return auth.explain(message) or GoogleApiError(code, message, url)


def _no_answer(error: Exception) -> UnreachableError | UntrustedError:
    said = str(error)
    return UntrustedError(said) if refusals.is_untrusted(said) else UnreachableError(said)


def _without_token(error: GoogleAuthError) -> Exception:
    """The exception for a token that can't be had."""
    if auth.is_passing(error):
        return _no_answer(error)
    return _unauthorized(str(error))


def _unauthorized(message: str) -> CredentialsError:
    return auth.explain(message) or CredentialsError(
        "Google does not accept the credentials", why=message, fix=auth.RENEW
    )
