"""Where Terraform's output goes: to the person who waits, or into a log that is kept."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Log:
    """One run's Terraform output.

    Args:
        show: Takes the output when it is not kept.
        keep: Whether it is kept instead of shown (MINIMIZE_TERRAFORM_LOGGING).
    """

    def __init__(self, show: Callable[[bytes], None], *, keep: bool) -> None:
        self._show = show
        self._keep = keep
        self._kept: list[bytes] = []

    @property
    def colours(self) -> bool:
        """Whether colours are of any use."""
        return not self._keep

    def write(self, data: bytes) -> None:
        """Take a part of the output, as it comes."""
        if self._keep:
            self._kept.append(data)
        else:
            self._show(data)

    @property
    def text(self) -> str:
        """What was kept."""
        return _ANSI.sub("", b"".join(self._kept).decode("utf-8", "replace"))

    @staticmethod
    def name(action: str) -> str:
        """A name for the log in the state folder; later ones sort behind earlier ones."""
        now = dt.datetime.now(dt.UTC)
        return f"logs/{now:%Y%m%dT%H%M%S.%fZ}-{action}.log"
