"""Routes and request checks from Google's own descriptions of its APIs (discovery documents).

The documents come with the package google-api-python-client, which is not imported: it would load
much that nobody needs here.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import operator
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rehearsal.cloud import schemas
from rehearsal.cloud.schemas import Style
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER_VARIABLE = "CLOUD_DISCOVERY_DOCUMENTS"
"""Names another folder to read the documents from ("compute.v1.json", ...)."""

_Words = tuple[str, ...]
_VERSION = re.compile(r"^v\d+(?:alpha\d+|beta\d+)?/")
_PARAMETER = re.compile(r"\{\+?(?P<name>\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Method:
    """One method of an API."""

    id: str  # as the document has it, without the API's name ("networks.insert")
    verb: str
    segments: tuple[str, ...]  # its path behind the version, cut at the slashes
    path: str  # the path in the form that names the method's own parameters
    parameters: Mapping[str, Mapping[str, Any]]  # descriptions of the parameters of path and query
    request: str | None  # the name of the body's schema; None: it takes none


@dataclass(frozen=True)
class Match:
    """What a request asks for."""

    method: Method
    # what its path says, decoded: by the names in the path template whose segments are parameters
    # of their own ("projectsId"), and by the method's own where they differ
    parameters: Mapping[str, str]


class Api:
    """One version of one of Google's APIs."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Any] = document["schemas"]
        self._common = document["parameters"]
        self._style = Style.of(document["name"])
        self._methods = list(_methods(document["resources"], document["name"]))
        # Verb and number of segments -> which of them are words -> the words -> numbers of methods.
        self._routes: dict[tuple[str, int], dict[tuple[int, ...], dict[_Words, list[int]]]] = {}
        for number, method in enumerate(self._methods):
            places = tuple(at for at, it in enumerate(method.segments) if "{" not in it)
            routes = self._routes.setdefault((method.verb, len(method.segments)), {})
            words = tuple(method.segments[at] for at in places)
            routes.setdefault(places, {}).setdefault(words, []).append(number)

    def names(self) -> set[str]:
        """What its methods are called, without the API's own name."""
        return {method.id for method in self._methods}

    def match(self, verb: str, path: str) -> Match:
        """The method that serves a path, which is without the version and percent-encoded."""
        segments = path.split("/")
        found = []
        for places, routes in self._routes.get((verb, len(segments)), {}).items():
            for number in routes.get(tuple(segments[at] for at in places), ()):
                bound = _bind(self._methods[number].segments, segments)
                if bound is not None:
                    found.append((len(bound), number, bound))
        if not found:
            raise GoogleError(404, "Not Found", status=self._style.status)
        # "firewallPolicies/{policy}" fits "firewallPolicies/listAssociations" too: literals win.
        _, number, bound = min(found, key=operator.itemgetter(0, 1))
        method = self._methods[number]
        return Match(method, bound | _own(method.path, segments))

    def check(self, match: Match, query: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        """Check a request as Google does before it looks at what the request means.

        Returns the body without what Google ignores: output-only fields, unset enums, nulls in
        lists.
        """
        values = {**query, **match.parameters}
        for name, parameter in match.method.parameters.items():
            if parameter.get("required") and not values.get(name):
                raise self._style.missing(name)
            if name in values:
                schemas.check_parameter(self._style, name, parameter, values[name])
        for name in query:
            known = name in match.method.parameters or name in self._common
            if not known and not name.startswith("$"):
                raise self._style.unbound(name)
        if match.method.request is None:
            return {}
        checker = schemas.Checker(self._schemas, self._style, match.method.id)
        return checker.check(match.method.request, body)


def _methods(resources: Mapping[str, Any], api: str) -> Iterator[Method]:
    for resource in resources.values():
        yield from _methods(resource.get("resources", {}), api)
        for method in resource.get("methods", {}).values():
            flat = _VERSION.sub("", method.get("flatPath", method["path"]))
            yield Method(
                id=method["id"].removeprefix(f"{api}."),
                verb=method["httpMethod"],
                segments=tuple(flat.split("/")),
                path=_VERSION.sub("", method["path"]),
                parameters=method.get("parameters", {}),
                request=method.get("request", {}).get("$ref"),
            )


def _bind(template: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    """What the template's parameters are in a path of as many segments; None: it does not fit."""
    bound = {}
    for expected, segment in zip(template, segments, strict=True):
        if expected == segment:
            continue
        parameter = _PARAMETER.match(expected)
        if parameter is None or not segment:
            return None
        verb = expected[parameter.end() :]
        if verb != segment[len(segment) - len(verb) :] or (not verb and ":" in segment):
            return None
        bound[parameter["name"]] = unquote(segment.removesuffix(verb))
    return bound


def _own(path: str, segments: list[str]) -> dict[str, str]:
    """A whole resource name ("{+name}") from the path's segments; {} when there is none."""
    parts = path.split("/")
    for index, part in enumerate(parts):
        parameter = _PARAMETER.match(part)
        if parameter is not None and part.startswith("{+"):
            inner = segments[index : len(segments) - (len(parts) - index - 1)]
            # A slash within a segment stays encoded: it would be one of the name's own.
            whole = "/".join(unquote(segment).replace("/", "%2F") for segment in inner)
            return {parameter["name"]: whole.removesuffix(part[parameter.end() :])}
    return {}


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the documents are.

    Raises:
        FileNotFoundError: The package that carries them is not installed.
    """
    if FOLDER_VARIABLE in environ:
        return Path(environ[FOLDER_VARIABLE])
    package = importlib.util.find_spec("googleapiclient")
    if package is None or package.origin is None:
        raise FileNotFoundError("google-api-python-client is not installed")
    return Path(package.origin).parent / "discovery_cache" / "documents"


@functools.cache
def api(name: str) -> Api:
    """An API by its name and version ("compute.v1"); read once in a process.

    Raises:
        FileNotFoundError: There is no such document.
    """
    return Api(json.loads((folder() / f"{name}.json").read_bytes()))
