"""The providers that Terraform gets for a root, as its lock file names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Final = ".terraform.lock.hcl"
_LOCKED: Final = re.compile(r'^provider "([^"]+)"', re.MULTILINE)


def locked(root: Path) -> frozenset[str]:
    """The addresses of the providers; none where there is no lock file."""
    file = root / _FILE
    return frozenset(_LOCKED.findall(file.read_text(encoding="utf-8")) if file.exists() else ())
