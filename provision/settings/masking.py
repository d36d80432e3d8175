"""Masking what looks like a credential, before anything is printed, logged or stored.

This includes the values of keys such as token, secret, password and key, bearer headers, and the
user part of URLs. A guess by names can miss a credential, so it must not be the only protection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK: Final = "***"
"""What replaces a credential."""

_TELLING: Final = re.compile(
    r"token(?!iz)|secret|passw(?:or)?d|passphrase|credential", re.IGNORECASE
)
# "key" as a word or at the end of a word: api_key and ApiKey2 match, key1 and keyboard do not.
_KEY: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])keys?(?:$|[^A-Za-z0-9])|[A-Za-z0-9]keys?\d*(?:$|[^A-Za-z0-9])",
    re.IGNORECASE,
)
_URL_USER: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/?#\s'\"@]{1,4096}@")
_AUTHORIZATION: Final = re.compile(r"(?P<kind>\b(?:bearer|basic)\s+)[^\s'\"]+", re.IGNORECASE)

# A name and "=" or ":", or an option and blanks; then a quoted or a bare value. Lengths are limited
# so that hostile input takes only linear time.
_NAME: Final = re.compile(
    r"""(?<![\w.-])(?:-{0,2}["']?([A-Za-z_][\w.-]{0,127})["']?\s{0,8}[=:]\s{0,8}
                  |--?([A-Za-z][\w.-]{0,127})\s{1,8})""",
    re.VERBOSE,
)
_VALUE: Final = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1?|[^\s,;}&|"']+""", re.DOTALL)


def is_telling(key: str) -> bool:
    """Whether the name of a key suggests that its value is a credential."""
    return _TELLING.search(key) is not None or _KEY.search(key) is not None


def mask(text: str) -> str:
    """Mask the parts of a text (a command, a message, a URL) that look like credentials."""
    text = _URL_USER.sub(rf"\g<scheme>{MASK}@", text)
    text = _AUTHORIZATION.sub(rf"\g<kind>{MASK}", text)
    return _mask_assignments(text)


def mask_map(values: Mapping[str, str]) -> dict[str, str]:
    """Mask credentials in a map: the whole value if the key suggests it, otherwise parts of it."""
    return {key: MASK if is_telling(key) else mask(value) for key, value in values.items()}


def mask_unreadable(text: str) -> str:
    """Mask a text that should be a map but can't be parsed.

    Its values can't be told apart, so one key that suggests a credential masks the whole text.
    """
    masked = mask(text)
    return masked if masked == text and not is_telling(text) else MASK


def _mask_assignments(text: str) -> str:
    kept, done = [], 0
    for name in _NAME.finditer(text):
        if name.start() < done or not is_telling(name[1] or name[2]):
            continue
        value = _VALUE.match(text, name.end())
        if value is None:
            continue
        quote = value[1] or ""
        kept += [text[done : name.end()], quote, MASK, quote]
        done = value.end()
    return "".join(kept) + text[done:]
