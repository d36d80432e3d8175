"""Machines that are older than the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class OlderMachine:
    """A machine that was made before the settings changed."""

    name: Annotated[str, "its name"]
    differences: Annotated[tuple[str, ...], "what differs, in words"]
