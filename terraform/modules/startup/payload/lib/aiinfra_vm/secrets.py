"""Runs the user's command with values of Secret Manager in its environment.

They are read by the VM's own account and kept in memory alone: what the command says is searched
for them on its way into the log.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from aiinfra_vm import configuration, metadata

UNREADABLE = 76
"""The exit code when a secret could not be read, so that the command was not begun."""

_MASK = b"***"
_TIMEOUT = 20  # seconds
_TRIES = 20
_LONGEST_PAUSE = 30.0  # seconds; a role that was just granted takes minutes to be known everywhere
_FORBIDDEN = 403
_TOO_MANY = 429
_SERVER = 500  # and above
_SHORTEST = 4  # bytes of a value that is masked: shorter ones are part of other words
_DRAIN = 10  # seconds that what the command said last may take to get into the log


class Unreadable(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """A secret can't be read."""


def read(resource: str) -> bytes:
    """The value of a secret's version.

    Args:
        resource: projects/P/secrets/S/versions/V.

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
                raise Unreadable(f"{resource}: {error.code}, {_words(error)}") from None
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


def _ask(resource: str) -> bytes:
    # gcloud's own variable for another endpoint.
    base = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER")
    url = f"{base or 'https://secretmanager.googleapis.com/'}v1/{resource}:access"
    headers = {"Authorization": f"Bearer {metadata.token()}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - Google's, or a test's
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
        return bytes(answer.read())


def _words(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"]["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def _filter(source: int, values: list[bytes]) -> None:
    """Pass on what comes until nobody is left who could write, without the values."""
    known = [value for value in values if len(value) >= _SHORTEST]
    # A line of a value of several, such as a key, may be shown by itself.
    known += [it for value in known for it in value.split(b"\n") if len(it) >= 2 * _SHORTEST]
    rest = b""
    while True:
        chunk = os.read(source, 65536)
        rest = masked(rest + chunk, known)
        kept = held_back(rest, known) if chunk else 0
        _write(rest[: len(rest) - kept])
        rest = rest[len(rest) - kept :]
        if not chunk:
            return


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _start_filter(values: list[bytes]) -> tuple[int, int]:
    """A process that filters what is written to a descriptor; it lives as long as a writer does."""
    source, sink = os.pipe()
    filtering = os.fork()
    if filtering == 0:
        os.close(sink)
        os.setsid()
        try:
            _filter(source, values)
        finally:
            os._exit(0)
    os.close(source)
    return filtering, sink


def _wait(filtering: int) -> None:
    """Wait for the end of the filter; a service that the command started may keep it."""
    deadline = time.monotonic() + _DRAIN
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline and os.waitpid(filtering, os.WNOHANG) == (0, 0):
            time.sleep(0.05)


def run(command: list[str], values: dict[str, bytes]) -> int:
    """Run a command with the values in its environment; its exit code, as a shell has it."""
    environment = {os.fsencode(name): os.fsencode(text) for name, text in os.environ.items()}
    environment.pop(b"PYTHONPATH", None)  # of this very program
    environment.update({name.encode(): value for name, value in values.items()})
    filtering, sink = _start_filter(list(values.values()))
    with subprocess.Popen(command, env=environment, stdout=sink, stderr=sink) as child:  # noqa: S603 - the user's own
        os.close(sink)
        code = child.wait()
    _wait(filtering)
    return code if code >= 0 else 128 - code


def main() -> int:
    """`BEGUN COMMAND...`: read the secrets, make the file BEGUN, run the command.

    Returns:
        The command's exit code, or `UNREADABLE`.
    """
    begun, *command = sys.argv[1:]
    values = {}
    for secret in configuration.load()["secrets"]:
        try:
            value = read(secret["resource"])
        except Unreadable as error:
            sys.stderr.write(f"the secret of {secret['name']} can't be read: {error}\n")
            return UNREADABLE
        if b"\0" in value:
            sys.stderr.write(f"the secret of {secret['name']} has a zero byte, and so is no text\n")
            return UNREADABLE
        values[secret["name"]] = value
    Path(begun).touch()
    return run(command, values)


if __name__ == "__main__":
    sys.exit(main())
