"""With which code the program in a container ends, so far as its words say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXIT: Final = re.compile(r"(?:^|[;&\s])exit (\d+)\s*$")


def code(spec: Mapping[str, Any]) -> int:
    """The exit code of a pod's first container: that of a shell's last `exit N`, or 0."""
    container: Mapping[str, Any] = next(iter(spec.get("containers") or []), {})
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    found = _EXIT.search(str(words[-1])) if words else None
    return int(found.group(1)) if found else 0
