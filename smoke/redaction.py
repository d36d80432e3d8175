"""What never reaches a recording: tokens, keys, passwords, the contents of objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

GONE: Final = "REDACTED"

# Names of fields in lower case, of requests and answers of Google's APIs.
_FIELDS: Final = frozenset(
    {
        *("accesstoken", "access_token", "idtoken", "id_token", "refreshtoken", "refresh_token"),
        *("token", "assertion", "authorization", "password", "secret", "client_secret"),
        *("privatekey", "private_key", "privatekeydata", "clientkey", "clientcertificate"),
        *("payload", "rawkey", "rsaencryptedkey", "signature", "signedblob", "signedjwt"),
        *("upload_id", "key"),
    }
)
# Keys of metadata and labels are called "key" too, and say nothing.
_NAMES_OF_THINGS: Final = frozenset({"key"})
_TEXTS: Final = (
    re.compile(r"\bya29\.[\w.-]+"),  # an access token
    re.compile(r"\bey[\w-]{10,}\.[\w-]{10,}\.[\w-]+"),  # a signed JWT
    re.compile(r"\bAIza[\w-]{30,}"),  # an API key
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL),
    re.compile(r"\bBearer\s+\S+", re.IGNORECASE),
)


def query(parameters: Mapping[str, str], *, secrets: frozenset[str]) -> dict[str, str]:
    """The parameters of a query without what is secret in them."""
    hidden = {it for it in parameters if it.lower() in _FIELDS or "signature" in it.lower()}
    return {
        name: GONE if name in hidden else text(value, secrets=secrets)
        for name, value in parameters.items()
    }


def document(value: Any, *, secrets: frozenset[str] = frozenset()) -> Any:
    """JSON without what is secret in it."""
    if isinstance(value, dict):
        if value.get("kind") == "Secret" and "apiVersion" in value:
            value = {**value, "data": GONE, "stringData": GONE}
        return {name: _field(name, it, secrets) for name, it in value.items()}
    if isinstance(value, list):
        return [document(it, secrets=secrets) for it in value]
    return text(value, secrets=secrets) if isinstance(value, str) else value


def text(value: str, *, secrets: frozenset[str] = frozenset()) -> str:
    """A text without what has the form of a secret."""
    for secret in secrets:
        value = value.replace(secret, GONE)
    for pattern in _TEXTS:
        value = pattern.sub(GONE, value)
    return value


def _field(name: str, value: Any, secrets: frozenset[str]) -> Any:
    known = name.lower() in _FIELDS - _NAMES_OF_THINGS
    return GONE if known and value else document(value, secrets=secrets)
