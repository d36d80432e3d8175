"""Lists in pages."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.cloud.wire import GoogleError


def page(
    entries: Iterable[tuple[str, Any]], query: Mapping[str, str], *, size: str, limit: int
) -> tuple[list[Any], dict[str, str]]:
    """One page of a list, and what names the next one.

    `entries`: keys in ascending order, and what is listed. A page begins behind the last key of the
    one before, so what comes and goes in between is neither doubled nor lost. `size`: the parameter
    that asks for a size ("maxResults", "pageSize").
    """
    after = _key(query.get("pageToken", ""))
    wanted = query.get(size, "")
    if wanted and not wanted.isdecimal():
        raise GoogleError(400, f"Invalid value for {size}: {wanted}", status=None)
    # 0 is "as many as you like" for every one of Google's lists.
    count = min(int(wanted or "0") or limit, limit)
    rest = [entry for entry in entries if after is None or entry[0] > after]
    token = {"nextPageToken": _token(rest[count - 1][0])} if len(rest) > count else {}
    return [item for _, item in rest[:count]], token


def _token(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def _key(token: str) -> str | None:
    if not token:
        return None
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise GoogleError(400, f"Invalid page token: {token}", status=None) from error
