"""A JSON object that somebody else wrote: a machine, another program, whoever may write there.

`read` gives the whole; the others give a part of it as its type, or nothing where it is another.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, Never

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")

_MOST: Final = 2**63


def read(text: str | bytes) -> dict[str, Any]:
    """Read an object.

    `text`: the document; bytes are UTF-8.

    Raises:
        ValueError: It is no JSON, or no object, or no text could be written of it again; says why.
    """
    if isinstance(text, bytes):
        text = text.decode()
    try:
        found = json.loads(text, parse_constant=_refuse)
        # Half of a surrogate pair is no character: neither a terminal nor a file takes it.
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError(f"it is a JSON {type(found).__name__}, not an object")  # noqa: TRY004
    return found


def inner(value: object) -> dict[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A list; empty for anything else."""
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none for anything else."""
    return [one for one in items(value) if isinstance(one, dict)]


def texts(value: object) -> list[str]:
    """The texts of a list; none for anything else."""
    return [one for one in items(value) if isinstance(one, str)]


def text(value: object) -> str:
    """A text, or a number as text; "" for anything else."""
    return str(value) if isinstance(value, str | int | float) else ""


def whole(value: object) -> int | None:
    """A whole number of 64 bits; None for anything else."""
    return value if type(value) is int and abs(value) < _MOST else None


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    found = whole(value) if isinstance(value, int) else value
    return float(found) if isinstance(found, int | float) and math.isfinite(found) else None


def _refuse(word: str) -> Never:
    raise ValueError(f"{word} is no JSON")
