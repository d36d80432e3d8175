"""A JSON object that somebody else wrote: a machine, another program, whoever may write there."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Never

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read(text: str | bytes) -> dict[str, Any]:
    """Read an object.

    Args:
        text: The document; bytes are UTF-8.

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


def _refuse(word: str) -> Never:
    raise ValueError(f"{word} is no JSON")
