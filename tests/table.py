"""Cases of a test as text, one a line: its columns are named in the first line.

A cell is YAML where it begins as an object, a list or a quoted text, or is a number, true, false or
null; - is no text; all else is text. `@name` is a part that several lines have: text anywhere in a
line, any other value as a cell of its own or within an object. A line that is indented goes on with
the one before. What stands after # at a line's beginning, or after two spaces, is a comment.
"""

import re
from typing import Any

import pytest
import yaml

_YAML = re.compile(r"[{\[\"'].*|-?[0-9.]+|true|false|null", re.DOTALL)
_PART = re.compile(r"@(\w+)")


def cases(table: str, **parts: Any) -> pytest.MarkDecorator:
    """Parametrize a test with the lines of a table."""
    text = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n|  # .*$", "", table))
    head, *lines = [line for line in text.strip().splitlines() if line]
    made = [[_cell(cell.strip(), parts) for cell in re.split(r" ?\|(?: |$)", it)] for it in lines]
    names = [name.strip() for name in head.split("|")]
    assert all(len(row) == len(names) for row in made), made
    return pytest.mark.parametrize(names, made, ids=lines)


def _cell(text: str, parts: dict[str, Any]) -> Any:
    if text == "-":
        return ""
    if text.startswith("@") and text[1:] in parts:
        return parts[text[1:]]

    def written(found: re.Match[str]) -> str:
        part = parts.get(found[1], found[0])
        return part if isinstance(part, str) else f'"{found[0]}"'

    text = _PART.sub(written, text)
    return _whole(yaml.safe_load(text), parts) if _YAML.fullmatch(text) else text


def _whole(value: Any, parts: dict[str, Any]) -> Any:
    """The value with the parts themselves where their names stand."""
    if isinstance(value, dict):
        return {name: _whole(it, parts) for name, it in value.items()}
    if isinstance(value, list):
        return [_whole(it, parts) for it in value]
    if isinstance(value, str) and value.startswith("@"):
        return parts.get(value[1:], value)
    return value
