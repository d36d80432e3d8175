"""Where Terraform keeps its state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Where Terraform keeps its state."""

    bucket: str  # the bucket
    prefix: str  # the prefix of the state's name in it
