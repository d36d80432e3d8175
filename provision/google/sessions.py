"""Connections to Google: nobody else gets a token, and nobody else's answers count as Google's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from provision import endpoints, signals
from provision.codes import Code
from provision.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import requests
    from google.auth.credentials import Credentials
    from google.auth.transport.requests import AuthorizedSession

_GOOGLES: Final = (".googleapis.com", ".gke.goog")
"""Google's own hosts: those of its APIs, and of GKE's control planes (container v1,
DNSEndpointConfig)."""

_PATIENCE: Final = 10.0
"""Seconds that a run which was told to stop goes on asking where nothing answers."""
_FAILURE: Final = 500


def require_trusted(url: str | None, environ: Mapping[str, str]) -> None:
    """Refuse to send an access token to anybody but Google and whom the environment names.

    `url`: as it is sent: what else reads a URL may see another host in it.
    """
    parts = urlsplit(url or "")
    host = parts.hostname or ""
    if host in endpoints.hosts(environ) or (parts.scheme == "https" and host.endswith(_GOOGLES)):
        return
    raise ClusterError(
        f"{parts.scheme}://{parts.netloc} would get the access token, and is not Google's",
        code=Code.UNSAFE_ENDPOINT,
        why=f"Google's are https://*{' and https://*'.join(_GOOGLES)}, and no variable"
        " *_CUSTOM_ENDPOINT of the environment names it",
        fix="find out who wrote that address; only if it is to be trusted, set"
        f" {endpoints.KUBERNETES}=https://HOST, or the variable of the API that it serves",
    )


def authorized(credentials: Credentials, environ: Mapping[str, str]) -> AuthorizedSession:
    """A session for the APIs, with the token of these credentials in each request."""
    from google.auth.transport.requests import AuthorizedSession, Request  # noqa: PLC0415 - 0.2 s

    made = AuthorizedSession(credentials, auth_request=Request(anonymous()))
    patience = _Patience()
    made.hooks["response"] += [_refuse_pages, patience.heard]

    def checked(request: requests.PreparedRequest) -> requests.PreparedRequest:
        require_trusted(request.url, environ)
        patience.ask()
        return request

    made.auth = checked
    return made


class _Patience:
    """Ends the tries of all clients where nothing answers and somebody has asked to stop.

    Each client tries again for minutes, and a run that is told to end asks several things yet.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    def ask(self) -> None:
        """A request is about to be sent.

        Raises:
            OSError: Nobody waits for its answer any more; no client takes it for passing.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if min(now - self._since, signals.stopped_for()) > _PATIENCE:
            raise OSError("nothing answers, and the run was told to stop")

    def heard(self, answer: requests.Response, **_: object) -> None:
        if answer.status_code < _FAILURE:
            self._since = None


def anonymous() -> requests.Session:
    """A session for those who give out tokens."""
    import requests  # noqa: PLC0415 - with google-auth's transport

    made = requests.Session()
    made.hooks["response"].append(_refuse_pages)
    return made


def _refuse_pages(answer: requests.Response, **_: object) -> None:
    """Take web pages and redirects for broken connections, whatever their status.

    They are logins of networks and words of proxies, or of a front end that is overloaded: Google's
    APIs answer in JSON and redirect nowhere. With 200 a page would pass for an answer, with 403 for
    a missing right, and with 404 there would seem to be nothing to destroy.
    """
    import requests  # noqa: PLC0415 - loaded, where there is an answer

    found = page_in_place_of(answer)
    if found:
        answer.close()
        raise requests.ConnectionError(found)


def page_in_place_of(answer: requests.Response) -> str:
    """What came in place of an answer, in words; "" for what may be one."""
    leads = f" that leads to {answer.headers['Location']}" if answer.is_redirect else ""
    if not leads and "html" not in answer.headers.get("Content-Type", ""):
        return ""
    # Cloud Storage itself says "No such object: ..." as HTML, in one line of text, to whoever asks
    # for an object's content (recorded in firebase/firebase-tools#3647, 2021-08-09). What was found
    # is left to its reader, as it may be read as a stream.
    if not leads and not answer.ok and not answer.text.lstrip().startswith("<"):
        return ""
    return (
        f"a web page ({answer.status_code}){leads} came in place of Google's answer, as from a"
        " network that wants a login, or from a proxy"
    )
