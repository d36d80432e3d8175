"""Partial responses: the parameter `fields`, which all of Google's JSON APIs have.

`a,b/c,d(e,f)` names fields to answer, where "/" and brackets lead into a field, or into each entry
of a list; "*" is every field ("Partial response" in the documentation of Compute Engine and of
Cloud Storage, read in 2026-11). A name that the answer's schema does not have is refused where the
service is held to Google's own description (`discovery.Api.check`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rehearsal.cloud.wire import GoogleError, Reply

Fields = dict[str, "Fields"]  # name -> what of it is wanted; empty for all of it

_TOKEN = re.compile(r"[A-Za-z0-9_.\-]+|[*,/()]")
_EVERY = "*"


def parse(text: str) -> Fields:
    """Read the parameter; GoogleError if it is none."""
    tokens = _TOKEN.findall(text)
    rest = iter([*tokens, ")"])
    found, end = _selection(rest, text)
    if "".join(tokens) != text or end != ")" or next(rest, None) is not None:
        raise invalid(text)
    return found


def of(reply: Reply, query: Mapping[str, str]) -> Reply:
    """A reply with the fields alone that were asked for, if any were."""
    text = query.get("fields", "")
    if not text or not isinstance(reply.body, dict):
        return reply
    return replace(reply, body=_kept(reply.body, parse(text)))


def invalid(text: str) -> GoogleError:
    """The refusal of a selection."""
    return GoogleError(400, f"Invalid field selection {text}", reason="invalidParameter")


def _selection(tokens: Iterator[str], text: str) -> tuple[Fields, str]:
    """The fields up to a closing bracket, which is the second."""
    found: Fields = {}
    while True:
        inner, name = found, next(tokens, "")
        while True:
            if not name or name in ",/()":
                raise invalid(text)
            inner = inner.setdefault(name, {})
            end = next(tokens, "")
            if end != "/":
                break
            name = next(tokens, "")
        if end == "(":
            more, end = _selection(tokens, text)
            if end != ")":
                raise invalid(text)
            inner |= more
            end = next(tokens, "")
        if end != ",":
            return found, end


def _kept(value: Any, fields: Fields) -> Any:
    if not fields:
        return value
    if isinstance(value, list):
        return [_kept(it, fields) for it in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _kept(it, fields.get(name, fields.get(_EVERY, {})))
        for name, it in value.items()
        if name in fields or _EVERY in fields
    }
