"""The rules for labels that resources have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links

if TYPE_CHECKING:
    from collections.abc import Mapping

_LABEL_KEY = re.compile(r"[^\W\d_][\w-]{0,62}")
_LABEL_VALUE = re.compile(r"[\w-]{0,63}")


def check(field: str, labels: Mapping[str, str]) -> None:
    """Refuse labels that break Google's rules."""
    allowed = (
        "can only contain lowercase letters, numeric characters, underscores and dashes. "
        "The {} can be at most 63 characters long. International characters are allowed."
    )
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or key != key.lower():
            raise links.invalid(
                field,
                "",
                f"Label key '{key}' violates format constraints. The key must start with a "
                f"lowercase character, {allowed.format('key')}",
            )
        if not _LABEL_VALUE.fullmatch(value) or value != value.lower():
            raise links.invalid(
                field,
                "",
                f"Label value '{value}' violates format constraints. "
                f"The value {allowed.format('value')}",
            )
