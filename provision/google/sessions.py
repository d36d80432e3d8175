"""Connections to Google that take nobody else's answers for Google's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests
    from google.auth.credentials import Credentials
    from google.auth.transport.requests import AuthorizedSession


def authorized(credentials: Credentials) -> AuthorizedSession:
    """A session for the APIs.

    Args:
        credentials: Whose token goes with each request.
    """
    from google.auth.transport.requests import AuthorizedSession, Request  # noqa: PLC0415 - 0.2 s

    made = AuthorizedSession(credentials, auth_request=Request(anonymous()))
    made.hooks["response"].append(_refuse_pages)
    return made


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

    Raises:
        requests.ConnectionError: This is one.
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
