"""Machines that are older than the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OlderMachine:
    """A machine that was made before the settings changed."""

    name: str  # its name
    differences: tuple[str, ...]  # what differs, in words
