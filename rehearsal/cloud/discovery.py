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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud import partial
from rehearsal.cloud.wire import GoogleError

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
    response: str | None  # that of the answer's


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
                check_parameter(self._style, name, parameter, values[name])
        for name in query:
            known = name in match.method.parameters or name in self._common
            if not known and not name.startswith("$"):
                raise self._style.unbound(name)
        if query.get("fields"):
            self._check_fields(match.method.response, partial.parse(query["fields"]))
        if match.method.request is None:
            return {}
        checker = Checker(self._schemas, self._style, match.method.id)
        return checker.check(match.method.request, body)

    def _check_fields(self, schema: str | None, wanted: partial.Fields) -> None:
        properties = self._schemas.get(schema or "", {}).get("properties", {})
        for name, inner in wanted.items():
            if name not in properties and name != "*":
                raise partial.invalid(name)
            of_one = properties.get(name, {})
            of_one = of_one.get("items") or of_one.get("additionalProperties") or of_one
            if inner and "$ref" in of_one:
                self._check_fields(of_one["$ref"], inner)


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
                response=method.get("response", {}).get("$ref"),
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
    """Where the documents are; FileNotFoundError without the package that carries them."""
    if FOLDER_VARIABLE in environ:
        return Path(environ[FOLDER_VARIABLE])
    package = importlib.util.find_spec("googleapiclient")
    if package is None or package.origin is None:
        raise FileNotFoundError("google-api-python-client is not installed")
    return Path(package.origin).parent / "discovery_cache" / "documents"


@functools.cache
def api(name: str) -> Api:
    """An API by name and version ("compute.v1"), read once in a process; or FileNotFoundError."""
    return Api(json.loads((folder() / f"{name}.json").read_bytes()))


_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_NUMBER = re.compile(r"-?\d+")
_INT_RANGES = {
    "int32": (-(2**31), 2**31),
    "uint32": (0, 2**32),
    "int64": (-(2**63), 2**63),
    "uint64": (0, 2**64),
}
_UNDOCUMENTED = {
    "NetworkRoutingConfig": {"deleteBgpAlwaysCompareMed": {"type": "boolean"}},
    "RouterNat": {"initialNatIps": {"type": "array", "items": {"type": "string"}}},
}
"""Fields that Google takes (provider 7.45.0 sends them) but describes nowhere, by schema."""

_SHOWN = 20  # a message lists at most so many values of an enum


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one family of APIs words its refusals."""

    root: str  # what the body is called in the messages
    status: str | None  # the canonical status: "" for none, None for the usual one of the HTTP code
    # whether a refused value is "Invalid value for field 'resource.name'", as Compute Engine has
    # it, or "Invalid value at 'name'"
    fields: bool

    @classmethod
    def of(cls, api: str) -> Style:
        """The style of the API of that name ("compute", "container")."""
        return _STYLES.get(api, _NEWER)

    def place(self, path: str) -> str:
        """A path of JSON names as the messages write it."""
        whole = ".".join(filter(None, (self.root, path)))
        return whole if self.fields else _CAPITAL.sub(lambda match: f"_{match[1].lower()}", whole)

    def unknown(self, path: str, name: str) -> GoogleError:
        """A field that the schema does not have."""
        place = self.place(path)
        where = f" at '{place}'" if place else ""
        return self._refusal(
            f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.',
            place,
        )

    def unbound(self, name: str) -> GoogleError:
        """A query parameter that the method does not have."""
        return self._refusal(
            f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter. '
            f"Field '{name}' could not be found in request message.",
            name,
        )

    def mistyped(self, path: str, kind: str, value: Any) -> GoogleError:
        """A value of a wrong JSON type."""
        place = self.place(path)
        return self._refusal(f"Invalid value at '{place}' ({kind}), {json.dumps(value)}", place)

    def unlisted(self, path: str, value: str, allowed: list[str]) -> GoogleError:
        """A value that is none of its enum's."""
        place = self.place(path)
        if not self.fields:
            return self._refusal(f"Invalid value at '{place}' (TYPE_ENUM), \"{value}\"", place)
        names = ", ".join(allowed[:_SHOWN])
        return self.invalid(place, value, f"Must be one of [{names}]")

    def unmatched(self, place: str, value: str, pattern: str) -> GoogleError:
        """A value that its pattern does not allow."""
        return self.invalid(place, value, f"Must be a match of regex '{pattern}'")

    def missing(self, place: str) -> GoogleError:
        """A field or parameter that must be there."""
        if self.fields:
            return GoogleError(400, f"Required field '{place}' not specified", reason="required")
        return self._refusal(f"{place} is required.", place)

    def invalid(self, place: str, value: Any, reason: str) -> GoogleError:
        """Any other value that is refused."""
        if self.fields:
            return GoogleError(400, f"Invalid value for field '{place}': '{value}'. {reason}")
        return self._refusal(f"Invalid value at '{place}', \"{value}\": {reason}", place)

    def _refusal(self, message: str, place: str) -> GoogleError:
        details = [
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": place, "description": message}],
            }
        ]
        return GoogleError(400, message, reason="badRequest", status=self.status, details=details)


_NEWER = Style(root="", status=None, fields=False)
_STYLES = {
    "compute": Style(root="resource", status="", fields=True),
    "storage": Style(root="", status="", fields=True),
}


def check_parameter(style: Style, name: str, schema: Mapping[str, Any], value: str) -> None:
    """Check a parameter of the path or the query, which is text."""
    kind = schema["type"]
    if kind == "integer" and not _fits(schema, value):
        raise style.mistyped(name, _proto(schema), value)
    if kind == "boolean" and value not in {"true", "false"}:
        raise style.mistyped(name, _proto(schema), value)
    if "enum" in schema and value not in schema["enum"]:
        raise style.unlisted(name, value, schema["enum"])
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        raise style.unmatched(name, value, schema["pattern"])


@dataclass(frozen=True)
class Checker:
    """Checks bodies of one method."""

    schemas: Mapping[str, Any]  # all schemas of the API
    style: Style  # how refusals are worded
    method: str  # the method's id, which decides what is required

    def check(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Check a body against the schema of that name.

        A null stands for an absent field, and passes everywhere; so does "" for an unset enum,
        which Google's Go clients send. Returns a copy without output-only fields, unset enums and
        nulls in lists. Other nulls stay: in a patch they clear a field.
        """
        return self._object(self.schemas[name], body, "")

    def _value(self, schema: Mapping[str, Any], value: Any, path: str) -> Any:
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"]]
        check = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "boolean": self._boolean,
            "integer": self._integer,
            "number": self._number,
        }.get(schema.get("type", "any"))
        return value if check is None else check(schema, value, path)

    def _object(self, schema: Mapping[str, Any], value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.style.mistyped(path, "TYPE_MESSAGE", value)
        fields = schema.get("properties", {}) | _UNDOCUMENTED.get(schema.get("id", ""), {})
        others = schema.get("additionalProperties")
        result = {}
        for name, entry in value.items():
            field = fields.get(name, others)
            if field is None:
                raise self.style.unknown(path, name)
            if field.get("readOnly") or ("enum" in field and entry == ""):
                continue
            inner = f"{path}.{name}" if path else name
            result[name] = None if entry is None else self._value(field, entry, inner)
        for name, field in fields.items():
            if self._requires(field) and result.get(name) in (None, ""):
                raise self.style.missing(self.style.place(f"{path}.{name}" if path else name))
        return result

    def _requires(self, field: Mapping[str, Any]) -> bool:
        # The annotations name updates too, but Google takes patches without the name.
        return self.method.endswith(".insert") and any(
            method.endswith(f".{self.method}")
            for method in field.get("annotations", {}).get("required", ())
        )

    def _array(self, schema: Mapping[str, Any], value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.style.mistyped(path, "TYPE_ARRAY", value)
        return [
            self._value(schema["items"], entry, f"{path}[{index}]")
            for index, entry in enumerate(value)
            if entry is not None
        ]

    def _string(self, schema: Mapping[str, Any], value: Any, path: str) -> Any:
        if schema.get("format") in _INT_RANGES:
            return self._integer(schema, value, path)
        if not isinstance(value, str):
            raise self.style.mistyped(path, "TYPE_STRING", value)
        if "enum" in schema and value not in schema["enum"]:
            raise self.style.unlisted(path, value, schema["enum"])
        if "pattern" in schema and value and not re.fullmatch(schema["pattern"], value):
            raise self.style.unmatched(self.style.place(path), value, f"(?:{schema['pattern']})")
        return value

    def _boolean(self, schema: Mapping[str, Any], value: Any, path: str) -> bool:
        if not isinstance(value, bool):
            raise self.style.mistyped(path, _proto(schema), value)
        return value

    def _integer(self, schema: Mapping[str, Any], value: Any, path: str) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not _fits(schema, value):
            raise self.style.mistyped(path, _proto(schema), value)
        # Google answers 64-bit integers as strings, 32-bit ones as numbers.
        return str(value) if schema["type"] == "string" else int(value)

    def _number(self, schema: Mapping[str, Any], value: Any, path: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.style.mistyped(path, _proto(schema), value)
        return value


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    if not isinstance(value, int | str) or not _NUMBER.fullmatch(str(value)):
        return False
    low, high = _INT_RANGES[schema.get("format", "int64")]
    return low <= int(value) < high


def _proto(schema: Mapping[str, Any]) -> str:
    """The name of a type in protocol buffers, as the messages give it."""
    kinds = {"boolean": "BOOL", "string": "STRING", "number": "DOUBLE", "integer": "INT32"}
    known = schema.get("format", "")
    return f"TYPE_{known.upper() if known in _INT_RANGES else kinds[schema['type']]}"
