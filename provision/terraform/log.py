"""Where Terraform's output goes: into a log beside the state, and to the terminal if asked for."""

from __future__ import annotations

import codecs
import datetime as dt
from typing import TYPE_CHECKING

from provision import printable
from provision.settings.masking import Lines
from provision.terraform.fold import Folding

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.settings.masking import Veil


class Log:
    """Terraform's output in one run, without credentials.

    `show`: gets the output too, with long values folded to a line; None for nobody.
    """

    def __init__(self, show: Callable[[str], None] | None, veil: Veil) -> None:
        self._show = show
        self._folding = Folding()
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
        text = printable.text(text, colours=True)
        self._kept.append(text)
        if self._show is not None and text:
            self._show(self._folding.feed(text))

    @property
    def text(self) -> str:
        """The whole output, without color codes."""
        return printable.COLOUR.sub("", "".join(self._kept))

    @staticmethod
    def name(action: str) -> str:
        """A name for the log in the state folder; the names sort by time."""
        now = dt.datetime.now(dt.UTC)
        return f"logs/{now:%Y%m%dT%H%M%S.%fZ}-{action}.log"
