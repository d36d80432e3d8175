"""The VM's metadata server: who this VM is, its account's token, its guest attributes."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import urllib.error
import urllib.request

_NAMESPACE = "aiinfra"
_TRIES = 6
_PAUSE = 2.0  # seconds before the second try, doubled before each other
_TIMEOUT = 20.0  # seconds
_TOKEN = "instance/service-accounts/default/token"  # noqa: S105 - its place
# Seconds before its end: the server keeps one until 4 minutes before it (google-auth, _helpers.py).
_RENEWAL = 225.0
_MISSING = 404
_TOO_MANY = 429
_SERVER = 500  # and above: the server's fault, and so worth another try

# The metadata server is on this VM's own link; no proxy leads there.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(path: str) -> str:
    """A value under computeMetadata/v1/.

    Raises:
        OSError: There is none, or the server does not answer.
    """
    return _ask(path).decode()


def changed(path: str, etag: str, seconds: int) -> tuple[str, str]:
    """A value once it is another than that of an earlier answer, or as it is after some seconds.

    Raises:
        OSError: There is none, or the server does not answer.
    """
    query = f"wait_for_change=true&timeout_sec={seconds}&last_etag={etag}"
    with _opener.open(_request(f"{path}?{query}"), timeout=seconds + _TIMEOUT) as answer:
        return answer.read().decode(), answer.headers.get("ETag", "0")


class _Kept:
    """The last token, and when it ends by the clock that also counts while the VM is suspended."""

    token = ""
    ends = 0.0


def token() -> str:
    """An access token of the VM's service account.

    It is kept while it is good, as a server that hangs is no reason to be silent elsewhere.

    Raises:
        OSError: The VM has no account, or the server does not answer.
    """
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    if _Kept.ends - now < _RENEWAL:
        is_good = _Kept.ends > now
        try:
            answer = json.loads(_ask(_TOKEN, tries=1, timeout=2) if is_good else _ask(_TOKEN))
        except OSError:
            if not is_good:
                raise
        else:
            _Kept.token = str(answer["access_token"])
            _Kept.ends = now + float(answer.get("expires_in", 0))
    return _Kept.token


def account() -> str:
    """The number of the account whose tokens this VM gets, which a later one of its name has not.

    Raises:
        OSError: The VM has no account, or the server does not answer.
        ValueError: It answers with no token.
    """
    # "sub" of its identity token (Compute Engine, "Verify the identity of VMs"), which is signed:
    # three parts of base64url, without what fills them up.
    token = get("instance/service-accounts/default/identity?audience=aiinfra")
    _, body, _ = token.split(".")
    return str(json.loads(base64.urlsafe_b64decode(f"{body}===")).get("sub", ""))


def put_guest_attribute(name: str, text: str) -> None:
    """Write a guest attribute of the namespace `aiinfra`.

    Raises:
        OSError: Guest attributes are off, or the server does not answer.
    """
    _ask(f"instance/guest-attributes/{_NAMESPACE}/{name}", text.encode())


def guest_attribute(name: str) -> str | None:
    """A guest attribute of the namespace `aiinfra`; None where there is none.

    Raises:
        OSError: Guest attributes are off, or the server does not answer.
    """
    try:
        return get(f"instance/guest-attributes/{_NAMESPACE}/{name}")
    except urllib.error.HTTPError as error:
        if error.code == _MISSING:
            return None
        raise


def _ask(
    path: str, body: bytes | None = None, *, tries: int = _TRIES, timeout: float = _TIMEOUT
) -> bytes:
    request = _request(path, body)
    for attempt in range(tries):
        try:
            with _opener.open(request, timeout=timeout) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            retryable = error.code == _TOO_MANY or error.code >= _SERVER
            if not retryable or attempt == tries - 1:
                raise
        except OSError:
            if attempt == tries - 1:
                raise
        time.sleep(_PAUSE * 2**attempt)
    raise AssertionError("the last try returns or raises")


def _request(path: str, body: bytes | None = None) -> urllib.request.Request:
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    return urllib.request.Request(
        f"http://{host}/computeMetadata/v1/{path}",
        data=body,
        headers={"Metadata-Flavor": "Google"},
        method="GET" if body is None else "PUT",
    )


def main() -> None:
    """`token`: print an access token."""
    if sys.argv[1:] != ["token"]:
        raise SystemExit("the one thing to ask for is: token")
    sys.stdout.write(token())


if __name__ == "__main__":
    main()
