"""Cases of a test as text, one a line: its columns are named in the first line.

A column is a string, or JSON where it is some; `@name` is a part that several lines have, given as
text. A line that is indented goes on with the one before.
"""

import json
import re

import pytest


def cases(table: str, **parts: str) -> pytest.MarkDecorator:
    """Parametrize a test with the lines of a table."""
    head, *lines = re.sub(r"\n {2,}", " ", table.strip()).splitlines()
    names = [name.strip() for name in head.split("|")]
    rows = [re.sub(r"@(\w+)", lambda part: parts.get(part[1], part[0]), line) for line in lines]
    made = [[_value(column.strip()) for column in re.split(r" \|(?: |$)", row)] for row in rows]
    assert all(len(row) == len(names) for row in made), made
    return pytest.mark.parametrize(names, made, ids=lines)


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
