"""Where Terraform keeps its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Where Terraform keeps its state."""

    bucket: Annotated[str, "the bucket"]
    prefix: Annotated[str, "the prefix of the state's name in it"]
