# noqa: INP001 - a hook of the build, no part of a package
"""What the wheel says that it needs: exactly what requirements/run.txt pins (ADR 99)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Pinned(MetadataHookInterface):
    """hatchling's hook for metadata that is made while it builds."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the dependencies: each line of the lock without its hashes."""
        lock = Path(self.root, "requirements", "run.txt").read_text(encoding="utf-8")
        found = re.findall(r"^([\w.-]+==[^\\\n]+?) *\\?$", lock, re.MULTILINE)
        metadata["dependencies"] = [line.replace(" ;", ";") for line in found]
