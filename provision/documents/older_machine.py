"""Machines that are older than the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OlderMachine:
    """A machine that was made before the settings changed.

    Attributes:
        name: Its name.
        differences: What differs, in words.
    """

    name: str
    differences: tuple[str, ...]
