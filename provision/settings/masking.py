"""Hiding what looks like a credential, before anything is printed, logged or stored.

What counts: keys that say so (token, secret, password, key and their kin), bearer headers, and
the user part of URLs. A guess by names can miss one; it must not be the only protection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK: Final = "***"
"""What stands where a credential stood."""

_TELLING: Final = re.compile(
    r"token(?!iz)|secret|passw(?:or)?d|passphrase|credential", re.IGNORECASE
)
# "key" as a word or at a word's end: api_key and ApiKey2 are, key1 and keyboard are not.
_KEY: Final = re.compile(
    r"(?:^|[^A-Za-z0-9])keys?(?:$|[^A-Za-z0-9])|[A-Za-z0-9]keys?\d*(?:$|[^A-Za-z0-9])",
    re.IGNORECASE,
)
_URL_USER: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/?#\s'\"@]{1,4096}@")
_AUTHORIZATION: Final = re.compile(r"(?P<kind>\b(?:bearer|basic)\s+)[^\s'\"]+", re.IGNORECASE)

# A name and "=" or ":", or an option and blanks; then a quoted or a bare value. Lengths are bounded
# so that hostile input costs no more than its size.
_NAME: Final = re.compile(
    r"""(?<![\w.-])(?:-{0,2}["']?([A-Za-z_][\w.-]{0,127})["']?\s{0,8}[=:]\s{0,8}
                  |--?([A-Za-z][\w.-]{0,127})\s{1,8})""",
    re.VERBOSE,
)
_VALUE: Final = re.compile(r"""(["'])(?:\\.|(?!\1)[^\\])*\1?|[^\s,;}&|"']+""", re.DOTALL)


def is_telling(key: str) -> bool:
    """Whether a key's name says that its value is a credential."""
    return _TELLING.search(key) is not None or _KEY.search(key) is not None


def mask(text: str) -> str:
    """The text (a command, a message, a URL) without the parts that look like credentials."""
    text = _URL_USER.sub(rf"\g<scheme>{MASK}@", text)
    text = _AUTHORIZATION.sub(rf"\g<kind>{MASK}", text)
    return _mask_assignments(text)


def mask_map(values: Mapping[str, str]) -> dict[str, str]:
    """The map without credentials: telling keys lose their whole value, others are searched."""
    return {key: MASK if is_telling(key) else mask(value) for key, value in values.items()}


def mask_unreadable(text: str) -> str:
    """A text that should have been a map, but can't be read as one.

    Where its values end is anybody's guess, so a telling key hides all of it.
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
