"""Terraform's output with long values folded to a line: payloads, dashboards, encoded files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from provision.printable import COLOUR

_HEREDOC: Final = re.compile(r"^(?P<kept>.*)<<[-~]?(?P<end>[A-Za-z]\w*)$")
_ENCODED: Final = re.compile(r"^(?P<blanks> *).* = (?P<call>jsonencode|yamlencode|base64gzip)\($")
_LONGEST: Final = 400
"""Characters of a line; what is longer is cut, as an encoded payload is."""


@dataclass(frozen=True)
class _Open:
    """A value that is being folded."""

    line: str
    end: re.Pattern[str]  # what the line looks like that ends it


class Folding:
    """Folds a stream of whole lines."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._count = 0

    def feed(self, text: str) -> str:
        """The text with each long value in one line."""
        return "".join(map(self._line, text.splitlines(keepends=True)))

    def _line(self, line: str) -> str:
        bare = COLOUR.sub("", line).rstrip("\n")
        if self._open is not None:
            return self._inside(bare)
        self._open = _begins(bare)
        if self._open is not None:
            self._count = 0
            return ""
        if len(bare) > _LONGEST:
            return f"{bare[:_LONGEST]}... ({len(bare):,} characters, whole in the log)\n"
        return line

    def _inside(self, bare: str) -> str:
        assert self._open is not None  # noqa: S101 - the caller looked
        if self._open.end.match(bare) is None:
            self._count += 1
            return ""
        begun, self._open = self._open, None
        rest = bare.strip()
        return f"{begun.line} ... {rest} ({self._count:,} lines, in the log)\n"


def _begins(bare: str) -> _Open | None:
    """The value of several lines that a line begins; None if it begins none."""
    heredoc = _HEREDOC.match(bare)
    if heredoc:
        return _Open(bare, re.compile(rf"^ *[+~-]? *{heredoc['end']}\b"))
    encoded = _ENCODED.match(bare)
    if encoded:
        most = len(encoded["blanks"]) + 2
        return _Open(bare, re.compile(rf"^ {{0,{most}}}\)"))
    return None
