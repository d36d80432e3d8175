"""Where Terraform's output goes: to the terminal, or into a log file that is uploaded."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Log:
    """Terraform's output in one run.

    Args:
        show: Gets the output if it is not kept.
        keep: Whether to keep the output instead of showing it (MINIMIZE_TERRAFORM_LOGGING).
    """

    def __init__(self, show: Callable[[bytes], None], *, keep: bool) -> None:
        self._show = show
        self._keep = keep
        self._kept: list[bytes] = []

    @property
    def colours(self) -> bool:
        """Whether Terraform should print colors."""
        return not self._keep

    def write(self, data: bytes) -> None:
        """Show or keep a part of the output."""
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
