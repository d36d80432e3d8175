"""Where Terraform's output goes: to the terminal, or into a log file that is uploaded."""

from __future__ import annotations

import codecs
import datetime as dt
import re
from typing import TYPE_CHECKING

from provision.settings.masking import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.settings.masking import Veil

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Log:
    """Terraform's output in one run, without credentials.

    Args:
        show: Gets the output if it is not kept.
        veil: What hides credentials in it.
        keep: Whether to keep the output instead of showing it (MINIMIZE_TERRAFORM_LOGGING).
    """

    def __init__(self, show: Callable[[bytes], None], veil: Veil, *, keep: bool) -> None:
        self._show = show
        self._lines = Lines(veil)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._keep = keep
        self._kept: list[bytes] = []

    @property
    def colours(self) -> bool:
        """Whether Terraform should print colors."""
        return not self._keep

    def write(self, data: bytes) -> None:
        """Show or keep a part of the output, as far as its lines are whole."""
        self._pass_on(self._lines.feed(self._decoder.decode(data)))

    def end(self) -> None:
        """Show or keep what is left of an unfinished line."""
        self._pass_on(self._lines.end())

    def _pass_on(self, text: str) -> None:
        data = text.encode()
        if self._keep:
            self._kept.append(data)
        else:
            self._show(data)

    @property
    def text(self) -> str:
        """The output that was kept, without color codes."""
        return _ANSI.sub("", b"".join(self._kept).decode("utf-8", "replace"))

    @staticmethod
    def name(action: str) -> str:
        """A name for the log in the state folder; the names sort by time."""
        now = dt.datetime.now(dt.UTC)
        return f"logs/{now:%Y%m%dT%H%M%S.%fZ}-{action}.log"
