"""Values of Secret Manager for the user's command, and for jobs.

They are read by the VM's own account and kept in memory alone: what the command says is searched
for them on its way into the log.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
import urllib.error
import urllib.request
from typing import Mapping

from aiinfra_vm import configuration, metadata

_MASK = b"***"
_TIMEOUT = 20  # seconds
_TRIES = 20
_LONGEST_PAUSE = 30.0  # seconds; a role that was just granted takes minutes to be known everywhere
_FORBIDDEN = 403
_TOO_MANY = 429
_SERVER = 500  # and above
_SHORTEST = 4  # bytes of a value that is masked: shorter ones are part of other words


class Unreadable(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """A secret can't be read."""


def read(resource: str) -> bytes:
    """The value of a secret's version.

    Raises:
        Unreadable: Google refuses, or does not answer.
    """
    for attempt in range(_TRIES):
        try:
            document = json.loads(_ask(resource))
            return base64.b64decode(document["payload"].get("data", ""))
        except urllib.error.HTTPError as error:
            retryable = error.code in (_FORBIDDEN, _TOO_MANY) or error.code >= _SERVER
            if not retryable or attempt == _TRIES - 1:
                words = f"{resource}: {error.code}, {_words(error)}"
                raise Unreadable(words + _grant(resource, error.code)) from None
        except OSError as error:
            if attempt == _TRIES - 1:
                raise Unreadable(f"{resource}: {error}") from None
        time.sleep(min(2.0**attempt, _LONGEST_PAUSE))
    raise AssertionError("the last try returns or raises")


def masked(text: bytes, values: list[bytes]) -> bytes:
    """The text without the values; the longest first, as one may begin another."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, _MASK)
    return text


def held_back(text: bytes, values: list[bytes]) -> int:
    """How many bytes at the end of a text may be the beginning of a value."""
    for length in range(min(len(text), max(map(len, values), default=0)), 0, -1):
        if any(value.startswith(text[-length:]) for value in values):
            return length
    return 0


class Masking:
    """Takes values out of a text that comes in pieces."""

    def __init__(self, values: list[bytes]) -> None:
        self._known = hidden(values)
        self._rest = b""

    def pass_on(self, chunk: bytes) -> bytes:
        """What can be said by now; all of it after an empty piece, which is the last."""
        text = masked(self._rest + chunk, self._known)
        kept = held_back(text, self._known) if chunk else 0
        ready, self._rest = text[: len(text) - kept], text[len(text) - kept :]
        return ready


def _ask(resource: str) -> bytes:
    # gcloud's own variable for another endpoint.
    base = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER")
    url = f"{base or 'https://secretmanager.googleapis.com/'}v1/{resource}:access"
    headers = {"Authorization": f"Bearer {metadata.token()}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - Google's, or a test's
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
        return bytes(answer.read())


def _grant(resource: str, code: int) -> str:
    """How the owner of a secret lets this VM read it; "" where that is not what is wrong."""
    if code != _FORBIDDEN:
        return ""
    _, project, _, secret, *_ = resource.split("/")
    account = "<the account of the VM>"
    with contextlib.suppress(OSError):
        account = metadata.get("instance/service-accounts/default/email")
    return (
        f"; its owner grants it: gcloud secrets add-iam-policy-binding {secret} --project {project}"
        " --role roles/secretmanager.secretAccessor --member"
        f" serviceAccount:{account}"
    )


def _words(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def hidden(values: list[bytes]) -> list[bytes]:
    """What is to be masked: the values, but for short ones, and the long lines of each."""
    known = [value for value in values if len(value) >= _SHORTEST]
    # A line of a value of several, such as a key, may be shown alone.
    return known + [it for value in known for it in value.split(b"\n") if len(it) >= 2 * _SHORTEST]


def of_all(own: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The values of SECRETS, and of those of a job's own, which go before them; by variable.

    `own`: variable -> the version's path.

    Raises:
        Unreadable: One can't be read, or is no text.
    """
    found = {}
    wanted = {it["name"]: it["resource"] for it in configuration.value("secrets") or ()}
    for name, resource in {**wanted, **(own or {})}.items():
        try:
            value = read(resource)
        except Unreadable as error:
            raise Unreadable(f"the secret of {name} can't be read: {error}") from None
        if b"\0" in value:
            raise Unreadable(f"the secret of {name} has a zero byte, and so is no text")
        found[name] = value
    return found
