"""Where Terraform's output goes: into a log beside the state, and to the terminal if asked for.

On the terminal long values are folded to a line: payloads, dashboards, encoded files.
"""

from __future__ import annotations

import codecs
import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import words
from provision.settings.masking import Lines
from provision.words import COLOUR

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.settings.masking import Veil

_HEREDOC: Final = re.compile(r"^(?P<kept>.*)<<[-~]?(?P<end>[A-Za-z]\w*)$")
_ENCODED: Final = re.compile(r"^(?P<blanks> *).* = (?P<call>jsonencode|yamlencode|base64gzip)\($")
_LONGEST: Final = 400  # characters of a line; what is longer is cut, as an encoded payload is


@dataclass(frozen=True)
class _Open:
    """A value that is being folded."""

    line: str
    end: re.Pattern[str]  # what the line looks like that ends it


class _Folding:
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


class Log:
    """Terraform's output in one run, without credentials.

    `show`: gets the output too, with long values folded to a line; None for nobody.
    """

    def __init__(self, show: Callable[[str], None] | None, veil: Veil) -> None:
        self._show = show
        self._folding = _Folding()
        self._lines = Lines(veil)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []

    @property
    def colours(self) -> bool:
        """Whether Terraform should print colors."""
        return self._show is not None

    def write(self, data: bytes) -> None:
        """Keep a part of the output, as far as its lines are whole."""
        self._pass_on(self._lines.feed(self._decoder.decode(data)))

    def end(self) -> None:
        """Keep what is left of an unfinished line."""
        self._pass_on(self._lines.end())

    def _pass_on(self, text: str) -> None:
        text = words.printable(text, colours=True)
        self._kept.append(text)
        if self._show is not None and text:
            self._show(self._folding.feed(text))

    @property
    def text(self) -> str:
        """The whole output, without color codes."""
        return words.COLOUR.sub("", "".join(self._kept))

    @staticmethod
    def name(action: str) -> str:
        """A name for the log in the state folder; the names sort by time."""
        now = dt.datetime.now(dt.UTC)
        return f"logs/{now:%Y%m%dT%H%M%S.%fZ}-{action}.log"
