"""From a request's method and path to the function that answers it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote

from rehearsal.cloud import discovery
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

Handler = Callable[..., Reply]


class Routes:
    """A service made of a table: "METHOD path/{name}:verb" to a function.

    The function gets the request, the store and each {name} of the path, decoded, by keyword. The
    first row that fits wins, so a path with a verb comes before the path without. `api`: names the
    discovery document that requests are checked against ("iam.v1"); "" for none. What Google has
    and the table has not is refused as such. `paths`: what is served ("GET projects/{project}").
    """

    def __init__(self, table: dict[str, Handler], *, api: str = "") -> None:
        self.api = api
        self.paths = tuple(table)
        self._routes = [
            (method, re.compile(_pattern(template)), handler)
            for (method, template), handler in (
                (route.split(" ", 1), handler) for route, handler in table.items()
            )
        ]

    def __call__(self, request: Request, store: Store) -> Reply:
        """Answer the request."""
        for method, pattern, handler in self._routes:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                checked = self._checked(request, match) if self.api else request
                groups = {name: unquote(value) for name, value in match.groupdict().items()}
                return handler(checked, store, **groups)
        if self.api:
            known = discovery.api(self.api).match(request.method, request.path).method.id
            raise GoogleError(501, f"{known} is not part of the simulated cloud.", status=None)
        raise GoogleError(404, "Not Found", status=None)

    def _checked(self, request: Request, match: re.Match[str]) -> Request:
        """The request with a body that Google would look at."""
        api = discovery.api(self.api)
        found = api.match(request.method, _unambiguous(match))
        body = api.check(found, request.query, request.json())
        return replace(request, body=json.dumps(body).encode() if body else b"")


def _unambiguous(match: re.Match[str]) -> str:
    """The path with encoded colons in its names ("example.com:p"), so that only verbs have one."""
    path = match.string
    for group in range(match.re.groups, 0, -1):
        start, end = match.span(group)
        path = path[:start] + path[start:end].replace(":", "%3A") + path[end:]
    return path


def _pattern(template: str) -> str:
    """The regular expression of a path; a name takes as little as it can, for a verb behind it."""
    parts = re.split(r"\{(\w+)\}", template)
    return "".join(
        f"(?P<{part}>[^/]+?)" if position % 2 else re.escape(part)
        for position, part in enumerate(parts)
    )
