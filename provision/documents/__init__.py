"""The JSON documents of a run as types: the only shapes that programs read.

One module for each noun. `plain` makes of them what `json.dumps` takes.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def plain(value: object) -> Any:
    """A document without types: dicts, lists, strings, numbers.

    A field that is None is null if it has no default, and left out if it has one.
    """
    match value:
        case enum.Enum():
            return value.value
        case Decimal():
            return float(value)
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = ((it, getattr(value, it.name)) for it in dataclasses.fields(value))
            return {
                it.name: plain(one)
                for it, one in fields
                if one is not None or it.default is not None
            }
        case _:
            return value
